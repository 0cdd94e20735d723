/** Text conversations with the rehearsal service by the real SDK and by plain HTTP. */
import {
  type Content,
  type GenerateContentConfig,
  type GenerateContentResponse,
  GoogleGenAI,
  type Part,
} from '@google/genai';
import type { VirtualClock } from '../../../src/replay/virtual-clock.js';
import { until } from './rehearsal-client.js';

export const TEXT_MODEL = 'gemini-flash-latest';

export const LOOKUP_ORDER = {
  name: 'lookup_order',
  description: 'Finds an order.',
  parametersJsonSchema: {
    type: 'object',
    properties: { order_id: { type: 'string' } },
    required: ['order_id'],
    additionalProperties: false,
  },
};

export function textClient(url: string): GoogleGenAI {
  return new GoogleGenAI({ apiKey: 'rehearsal', apiVersion: 'v1beta', httpOptions: { baseUrl: url } });
}

export function withTools(
  declarations: readonly object[],
  config: GenerateContentConfig = {},
): GenerateContentConfig {
  return { tools: [{ functionDeclarations: [...declarations] }], ...config };
}

export function user(text: string): Content {
  return { role: 'user', parts: [{ text }] };
}

export function model(text: string): Content {
  return { role: 'model', parts: [{ text }] };
}

/** The user's side of a function call. */
export function results(...responses: [name: string, response: Record<string, unknown>][]): Content {
  const parts = responses.map(([name, response]): Part => ({ functionResponse: { name, response } }));
  return { role: 'user', parts };
}

/** What the model said, as it goes back into the conversation. */
export function said(...responses: readonly GenerateContentResponse[]): Content {
  const parts = responses.flatMap((response) => response.candidates?.[0]?.content?.parts ?? []);
  return { role: 'model', parts };
}

export interface PlainAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** A request as any client may send it; the key is left out when `headers` are given. */
export async function post(url: string, body: unknown, init: RequestInit = {}): Promise<PlainAnswer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'x-goog-api-key': 'rehearsal' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
  });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

/** Moves the clock until the promise is settled, and passes on what it gave. */
export async function soon<T>(clock: VirtualClock, promise: Promise<T>, stepMs = 20): Promise<T> {
  let isSettled = false;
  const settled = () => void (isSettled = true);
  promise.then(settled, settled);
  await until(clock, () => isSettled, stepMs);
  return promise;
}
