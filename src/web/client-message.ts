/**
 * What a web client may send: JSON text, one object a message. Anything else is a fault that names what is wrong in words for
 * the client's author, and never quotes what was sent.
 */
import { z } from 'zod';
import { faultText, isWholeText, NO_WHOLE_TEXT } from '../input-fault.js';
import { MESSAGE_MAX_CHARS, WEB_IMAGE_MAX_BYTES, WEB_PAYLOAD_MAX_BYTES } from '../limits.js';
import { SOUND_FORMATS, soundFormatOf, type SoundFormat } from './sound-format.js';

export interface StartMessage {
  readonly type: 'start';
  readonly userId: string;
  readonly sessionId: string;
  /** Undefined: text only. */
  readonly audio: SoundFormat | undefined;
}

export type ClientMessage =
  | StartMessage
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'audio'; readonly sound: Uint8Array }
  | { readonly type: 'image'; readonly mimeType: string; readonly image: Uint8Array }
  | { readonly type: 'end' };

export interface ClientFault {
  readonly type: 'fault';
  readonly message: string;
}

const FORMATS = `audio must be one of ${SOUND_FORMATS.join(', ')}`;
const name = z.string().min(1).max(256);
const format = z.string().transform((value, context) => {
  const found = soundFormatOf(value);
  if (found !== undefined) return found;
  context.addIssue({ code: 'custom', message: FORMATS });
  return z.NEVER;
});
/** Strict: what is cut or quoted wrongly must not become other bytes. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const bytes = z
  .string()
  .min(1, 'is empty')
  .max(WEB_PAYLOAD_MAX_BYTES)
  .regex(BASE64, 'is not base64')
  .transform((data) => Buffer.from(data, 'base64'));

const schema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('start'), userId: name, sessionId: name, audio: format.optional() }),
  z.strictObject({
    type: z.literal('text'),
    text: z
      .string()
      .max(MESSAGE_MAX_CHARS)
      .refine((text) => text.trim() !== '', 'is empty')
      .refine(isWholeText, NO_WHOLE_TEXT),
  }),
  z.strictObject({ type: z.literal('audio'), data: bytes }),
  z.strictObject({
    type: z.literal('image'),
    mimeType: z.enum(['image/jpeg', 'image/png', 'image/webp']),
    data: bytes.refine(
      (image) => image.length <= WEB_IMAGE_MAX_BYTES,
      `is longer than ${WEB_IMAGE_MAX_BYTES} bytes`,
    ),
  }),
  z.strictObject({ type: z.literal('end') }),
]);

/** `{"type":"audio","data":""}` */
const AUDIO_FRAME_BYTES = 26;

/**
 * Whether a message is bulk, sound or a picture, by its beginning alone: so that it can be left out without being read. A client that
 * writes its keys in another order has its messages read.
 */
export function bulkOf(data: Buffer): 'audio' | 'image' | undefined {
  const [, kind] = /^\s*\{\s*"type"\s*:\s*"(audio|image)"/.exec(data.toString('latin1', 0, 64)) ?? [];
  return kind as 'audio' | 'image' | undefined;
}

/** Bytes of sound in a message of sound, near enough for counting. */
export function soundBytesIn(data: Buffer): number {
  return Math.max(0, Math.floor(((data.length - AUDIO_FRAME_BYTES) * 3) / 4));
}

export function readClientMessage(text: string): ClientMessage | ClientFault {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { type: 'fault', message: 'a message must be JSON' };
  }
  const read = schema.safeParse(value);
  if (!read.success) return { type: 'fault', message: faultOf(read.error) };
  const message = read.data;
  switch (message.type) {
    case 'start':
      return { ...message, audio: message.audio };
    case 'audio':
      return { type: 'audio', sound: message.data };
    case 'image':
      return { type: 'image', mimeType: message.mimeType, image: message.data };
    default:
      return message;
  }
}

/** The first thing that is wrong, by its place; a key that is not known is not quoted. */
function faultOf(error: z.ZodError): string {
  const issue = error.issues[0];
  if (issue === undefined) return 'the message is not one that can be read';
  if (
    issue.code === 'invalid_union' ||
    issue.path[0] === 'type' ||
    (issue.path.length === 0 && issue.code === 'invalid_type')
  )
    return 'type must be start, text, audio, image or end';
  if (issue.path[0] === 'audio') return FORMATS;
  return faultText(error, 'the message');
}
