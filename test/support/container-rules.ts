/**
 * What the Dockerfile, .dockerignore and compose.yaml must keep true, as plain functions over their text, one line a breach,
 * so that a small bad sample can show that each rule bites. Only the parts of the formats that the project uses are read.
 */
import { parse } from 'yaml';

export interface Instruction {
  readonly name: string;
  readonly value: string;
}

const SECRET_NAME = /KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/;

export function readDockerfile(text: string): Instruction[] {
  return text
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .flatMap((line) => {
      const match = /^([A-Z]+)\s+(.*)$/.exec(line.trim());
      return match === null ? [] : [{ name: match[1] ?? '', value: match[2] ?? '' }];
    });
}

/** The words of an exec form, or undefined for a shell form. */
export function execForm(value: string): string[] | undefined {
  const from = value.indexOf('[');
  if (from < 0 || !/^(--\S+\s+)*(CMD\s+)?$/.test(value.slice(0, from))) return undefined;
  const words: unknown = JSON.parse(value.slice(from));
  return Array.isArray(words) && words.every((word) => typeof word === 'string') ? words : undefined;
}

export function environmentOf(instructions: readonly Instruction[]): Record<string, string> {
  const pairs = instructions
    .filter(({ name }) => name === 'ENV')
    .flatMap(({ value }) => value.split(/\s+/).map((pair) => pair.split('=', 2)));
  return Object.fromEntries(pairs) as Record<string, string>;
}

/** `nodeLines`: the major versions that CI checks. `scriptsAllowed`: whether package.json lets any install script run. */
export interface DockerfileFacts {
  readonly nodeLines: readonly string[];
  readonly scriptsAllowed: boolean;
  readonly startCommand: string;
}

export function dockerfileBreaches(text: string, facts: DockerfileFacts): string[] {
  const all = readDockerfile(text);
  const bases = all.filter(({ name }) => name === 'FROM').map(({ value }) => value.split(' ')[0] ?? '');
  const lastFrom = all.findLastIndex(({ name }) => name === 'FROM');
  const image = all.slice(lastFrom + 1);
  const last = (wanted: string): string => image.findLast(({ name }) => name === wanted)?.value ?? '';
  const environment = environmentOf(image);
  const line = /^node:(\d+)-[a-z]+-slim$/.exec(bases[0] ?? '')?.[1];
  const userAt = image.findIndex(({ name }) => name === 'USER');
  const installs = all.filter(({ name, value }) => name === 'RUN' && /\bnpm (ci|i|install)\b/.test(value));
  const rules: [boolean, string][] = [
    [bases.length > 1, 'has one stage'],
    [new Set(bases).size === 1, 'has several bases'],
    [
      line !== undefined && facts.nodeLines.includes(line),
      `starts from ${bases[0]}, which CI does not check`,
    ],
    [
      installs.every(({ value }) => /\bnpm ci\b/.test(value)),
      'installs other packages than the lock file says',
    ],
    [
      facts.scriptsAllowed || installs.every(({ value }) => value.includes('--ignore-scripts')),
      'runs install scripts that package.json does not allow',
    ],
    [!image.some(({ value }) => /\bnpm\b/.test(value)), 'needs npm in its last stage'],
    [/^[1-9]\d*(:[1-9]\d*)?$/.test(last('USER')), 'runs as root or as a user by name'],
    [!image.slice(userAt).some(({ name }) => name === 'RUN'), 'goes on building as its user'],
    [execForm(last('CMD'))?.join(' ') === facts.startCommand, 'does not start what npm start starts'],
    [execForm(last('HEALTHCHECK')) !== undefined, 'has no HEALTHCHECK in exec form'],
    [last('STOPSIGNAL') === 'SIGTERM', 'is not stopped by SIGTERM'],
    [environment['NODE_ENV'] === 'production', 'does not set NODE_ENV=production'],
    [last('EXPOSE') === environment['PORT'], 'exposes another port than PORT'],
    [last('VOLUME') === JSON.stringify([environment['DATA_DIR']]), 'has another volume than DATA_DIR'],
    [
      environment['DATABASE_URL'] === undefined,
      'names a database, which then does not follow the DATA_DIR that somebody mounts',
    ],
    [
      !all.some(({ name, value }) => /^(ENV|ARG)$/.test(name) && SECRET_NAME.test(value)),
      'holds a secret or asks for one while it is built',
    ],
  ];
  return rules.filter(([holds]) => !holds).map(([, breach]) => `the Dockerfile ${breach}`);
}

/** What each `COPY` from the project takes. */
export function copiedPaths(text: string): string[] {
  return readDockerfile(text)
    .filter(({ name, value }) => name === 'COPY' && !value.includes('--from='))
    .flatMap(({ value }) => value.split(/\s+/).slice(0, -1));
}

/** Whether a path stays out of the build: the last pattern that matches it or a folder above it decides. */
export function isIgnored(ignoreFile: string, path: string): boolean {
  const patterns = ignoreFile.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const parts = path.split('/');
  const prefixes = parts.map((_, at) => parts.slice(0, at + 1).join('/'));
  return patterns.reduce((ignored, pattern) => {
    const negated = pattern.startsWith('!');
    const expression = pattern
      .replace(/^!/, '')
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replace(/(\*\*\/)|\*/g, (_, folders?: string) => (folders === undefined ? '[^/]*' : '(.*/)?'));
    return prefixes.some((prefix) => new RegExp(`^${expression}$`).test(prefix)) ? !negated : ignored;
  }, false);
}

export interface ComposeService {
  readonly build?: string;
  readonly image?: string;
  readonly restart?: string;
  readonly profiles?: readonly string[];
  readonly stop_grace_period?: string;
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly deploy?: { readonly resources?: { readonly limits?: Readonly<Record<string, unknown>> } };
  readonly logging?: { readonly options?: Readonly<Record<string, string>> };
}

export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly secrets?: Readonly<Record<string, { readonly environment?: string }>>;
  readonly volumes?: Readonly<Record<string, unknown>>;
}

export function readCompose(text: string): Compose {
  return parse(text) as Compose;
}

/** `paths`: whether a file or folder of the project exists. */
export function composeBreaches(compose: Compose, exists: (path: string) => boolean): string[] {
  return Object.entries(compose.services).flatMap(([name, service]) =>
    [...hardeningBreaches(service), ...referenceBreaches(service, compose, exists)].map(
      (breach) => `${name} ${breach}`,
    ),
  );
}

function hardeningBreaches(service: ComposeService): string[] {
  const limits = service.deploy?.resources?.limits ?? {};
  const secrets = Object.entries(service.environment ?? {}).filter(([name]) => SECRET_NAME.test(name));
  const rules: [boolean, string][] = [
    [
      service.build !== undefined || /^[\w./-]+:v?\d+\.\d+[\w.-]*$/.test(service.image ?? ''),
      'has no exact tag',
    ],
    [service.restart !== undefined, 'has no restart policy'],
    [
      service.build !== undefined || service.healthcheck?.test[0] === 'CMD',
      'has no health check in exec form',
    ],
    [
      ['cpus', 'memory', 'pids'].every((limit) => limit in limits),
      'has no limits of CPU, memory and processes',
    ],
    [service.cap_drop?.includes('ALL') === true, 'keeps capabilities'],
    [service.security_opt?.includes('no-new-privileges:true') === true, 'may gain privileges'],
    [service.logging?.options?.['max-size'] !== undefined, 'has a log without a bound'],
    [(service.ports ?? []).every((port) => port.startsWith('127.0.0.1:')), 'is open to other machines'],
    [secrets.every(([, value]) => value === null || /^\$\{\w+:[?-][^}]*\}$/.test(value)), 'holds a secret'],
  ];
  return rules.filter(([holds]) => !holds).map(([, breach]) => breach);
}

function referenceBreaches(
  service: ComposeService,
  compose: Compose,
  exists: (path: string) => boolean,
): string[] {
  const mounts = (service.volumes ?? []).map((volume) => volume.split(':'));
  return [
    ...mounts.flatMap(([source = '', , mode]) => {
      if (!source.startsWith('./'))
        return source in (compose.volumes ?? {}) ? [] : [`has no volume ${source}`];
      if (!exists(source.slice(2))) return [`mounts ${source}, which does not exist`];
      return mode === 'ro' ? [] : [`may write ${source}`];
    }),
    ...(service.secrets ?? []).flatMap((secret) =>
      compose.secrets?.[secret]?.environment === undefined ? [`has no secret ${secret}`] : [],
    ),
    ...Object.keys(service.depends_on ?? {}).flatMap((other) =>
      compose.services[other] === undefined || compose.services[other].profiles !== undefined
        ? [`depends on ${other}, which is not always there`]
        : [],
    ),
  ];
}
