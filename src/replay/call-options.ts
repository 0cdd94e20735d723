/**
 * The command line of `npm run call`: read once into one checked object. A mistake is one clear line.
 */
import { parseArgs } from 'node:util';
import { ConfigError, errorText } from '../errors.js';
import type { TimedKey } from './phone.js';

export interface CallOptions {
  readonly file: string;
  /** Undefined: the default local server, or one that the command starts itself. */
  readonly url: string | undefined;
  readonly out: string;
  readonly agent: string | undefined;
  readonly from: string | undefined;
  readonly stereo: boolean;
  readonly display: boolean;
  readonly lingerMs: number;
  readonly keys: readonly TimedKey[];
}

export const CALL_HELP = `Plays a caller through the server, in real time, and writes what the caller heard.

  npm run call -- FILE [options]

FILE is a .wav file of any common kind, headerless 8 kHz mu-law (.ulaw, .raw), or a call fixture (.ndjson), whose
caller is played, keys included.

  --url URL        a running server; default: the local one, or one that is started for this call
  --out FILE       where to write what the caller heard (default: heard.wav)
  --stereo         write both sides: caller left, agent right
  --agent NAME     call this agent instead of the default one
  --from NUMBER    the caller's number
  --dtmf LIST      keys to press, as SECONDS:KEYS from the start of the file, such as 8.5:1,12:42#
  --linger SECONDS hang up after the file has ended and the agent was silent for so long (default: 4)
  --no-display     no live display
  --help           this text
`;

/** Between the keys of one entry such as 12:42#. */
const KEY_SPACING_MS = 250;
const LINGER_DEFAULT = '4';
const SECONDS_MAX = 3_600;

const OPTIONS = {
  url: { type: 'string' },
  out: { type: 'string', default: 'heard.wav' },
  stereo: { type: 'boolean', default: false },
  agent: { type: 'string' },
  from: { type: 'string' },
  dtmf: { type: 'string', default: '' },
  linger: { type: 'string', default: LINGER_DEFAULT },
  'no-display': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

function wrong(what: string): ConfigError {
  return new ConfigError('config_invalid', `${what} (--help tells the options)`);
}

function secondsToMs(text: string, what: string): number {
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds <= SECONDS_MAX))
    throw wrong(`${what}: "${text}" is no number of seconds up to ${SECONDS_MAX}`);
  return seconds * 1_000;
}

function readKeys(list: string): TimedKey[] {
  return list
    .split(',')
    .filter((entry) => entry !== '')
    .flatMap((entry) => {
      const [at, digits] = entry.split(':');
      if (at === undefined || digits === undefined || !/^[0-9A-D*#]+$/.test(digits)) {
        throw wrong(`--dtmf: "${entry}" is not SECONDS:KEYS`);
      }
      const atMs = secondsToMs(at, '--dtmf');
      return Array.from(digits, (digit, index) => ({ atMs: atMs + index * KEY_SPACING_MS, digit }));
    });
}

function readUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw wrong(`--url: "${text}" is no http:// or https:// address`);
  }
  return url.origin;
}

/** Reads the arguments; `help` when that is asked for. Throws ConfigError for a mistake. */
export function readCallOptions(argv: readonly string[]): CallOptions | 'help' {
  let parsed;
  try {
    parsed = parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw wrong(errorText(error));
  }
  const { values, positionals } = parsed;
  if (values.help) return 'help';
  const [file] = positionals;
  if (file === undefined || positionals.length > 1) throw wrong('name one caller file');
  return {
    file,
    url: readUrl(values.url),
    out: values.out,
    agent: values.agent,
    from: values.from,
    stereo: values.stereo,
    display: !values['no-display'],
    lingerMs: secondsToMs(values.linger, '--linger'),
    keys: readKeys(values.dtmf),
  };
}
