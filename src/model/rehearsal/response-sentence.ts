/** What can be said of a function's response where no dialogue says how. */
import { isRecord } from './text-generation-arguments.js';

/** "Your parcel is on its way." out of `{ message }`, or what else a response offers to be said. */
export function responseSentence(name: string, response: Readonly<Record<string, unknown>> = {}): string {
  const error = errorIn(response);
  if (error !== undefined) return sentence(`That did not work: ${error}`);
  // Where a function's result was not an object, it stands under one of these.
  for (const wrapper of ['output', 'result']) {
    const inner = response[wrapper];
    if (isRecord(inner)) return responseSentence(name, inner);
  }
  const message = spoken(response['message']);
  if (message !== undefined) return sentence(message);
  const status = spoken(response['status']);
  if (status !== undefined) return sentence(`The status is ${status}`);
  const first = Object.values(response)
    .map(spoken)
    .find((text) => text !== undefined);
  if (first !== undefined) return sentence(first);
  return sentence(`${name.replaceAll(/[_.:-]+/g, ' ')} is done`);
}

function errorIn(response: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const error = response?.['error'];
  if (error === undefined || error === null || error === false) return undefined;
  if (isRecord(error)) return spoken(error['message']) ?? 'there was an error.';
  return spoken(error) ?? 'there was an error.';
}

function spoken(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
}

function sentence(text: string): string {
  return /[.!?…]["')\]]?$/.test(text) ? text : `${text}.`;
}
