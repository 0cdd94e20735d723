/** Reads the body of a request whole, within a size and a time; what comes after a refusal is thrown away. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../clock.js';
import { REHEARSAL_BODY_MAX_MS, REHEARSAL_PAYLOAD_MAX_BYTES } from './rehearsal-limits.js';
import { BODY_LATE, bodyTooLarge, invalidArgument, type TextRefusal } from './text-generation-refusal.js';

export type TextBody = { readonly text: string } | { readonly refusal: TextRefusal };

/** `done` is called once; never when the client went away before its body was whole. Returns what gives up reading. */
export function readTextBody(
  request: IncomingMessage,
  clock: Clock,
  done: (body: TextBody) => void,
): () => void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let isDone = false;
  const finish = (body?: TextBody): void => {
    if (isDone) return;
    isDone = true;
    late.cancel();
    chunks.length = 0;
    if (body !== undefined) done(body);
  };
  const late = clock.setTimer(REHEARSAL_BODY_MAX_MS, () => finish({ refusal: BODY_LATE }));
  request.on('data', (chunk: Buffer) => {
    if (isDone) return;
    bytes += chunk.length;
    if (bytes > REHEARSAL_PAYLOAD_MAX_BYTES) finish({ refusal: bodyTooLarge(REHEARSAL_PAYLOAD_MAX_BYTES) });
    else chunks.push(chunk);
  });
  request.on('end', () => finish(decoded(Buffer.concat(chunks))));
  request.on('close', () => finish());
  request.on('error', () => finish());
  return () => finish();
}

function decoded(bytes: Buffer): TextBody {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { refusal: invalidArgument('Invalid JSON payload received. The body is not UTF-8.') };
  }
}
