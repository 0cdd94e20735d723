/** The built server as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { waitUntil } from './wait-until.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export class ServerProcess {
  /** The exit code; null where a signal ended it. */
  readonly exit: Promise<number | null>;
  readonly #child: ChildProcess;
  #output = '';

  /** `root` is where the package lies. */
  constructor(settings: Readonly<Record<string, string>>, root = ROOT) {
    const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...settings };
    this.#child = spawn(process.execPath, ['dist/main.js'], { cwd: root, env });
    this.#child.stdout?.on('data', (chunk: Buffer) => (this.#output += chunk.toString()));
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.#output += chunk.toString()));
    this.exit = new Promise((resolve) => {
      this.#child.on('exit', (code) => resolve(code));
    });
  }

  async url(): Promise<string> {
    const find = (): string | undefined => /answers at (http:\/\/\S+)\/twilio\/voice/.exec(this.#output)?.[1];
    await waitUntil(`an address; ${this.#output}`, () => find() !== undefined);
    return find()!;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get output(): string {
    return this.#output;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exit;
  }
}
