/** What is wrong with a request that could not be read, in words: its path, its encoding, its size or its JSON. */
import { HTTP_BODY_MAX_BYTES } from '../limits.js';

export interface RequestFault {
  readonly status: number;
  readonly error: string;
}

/** The `type` of the errors of body-parser, and what each is for whoever sent the request. */
const BODY_FAULTS: Readonly<Record<string, string>> = {
  'entity.parse.failed': 'the body is not JSON that is an object or a list',
  'entity.too.large': `the body is larger than ${HTTP_BODY_MAX_BYTES} bytes`,
  'encoding.unsupported': 'the content encoding of the body must be identity, gzip, deflate or br',
  'charset.unsupported': 'the charset of the body must be UTF-8',
  'request.aborted': 'the body broke off',
  'request.size.invalid': 'the body is not as long as Content-Length says',
};

/** Undefined for what is no fault of the request. */
export function requestFault(error: unknown): RequestFault | undefined {
  const status = fieldOf(error, 'status');
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  if (error instanceof URIError) return { status, error: 'the path is not percent-encoded UTF-8' };
  const type = fieldOf(error, 'type');
  const known = typeof type === 'string' ? BODY_FAULTS[type] : undefined;
  if (known !== undefined) return { status, error: known };
  // Errors of zlib have only their code.
  if (/^(?:Z_|ERR_)/.test(String(fieldOf(error, 'code'))))
    return { status, error: 'the body is not encoded as its Content-Encoding says' };
  return { status, error: 'the request could not be read' };
}

function fieldOf(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined;
}
