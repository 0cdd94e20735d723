import type { Reporter, TestModule } from 'vitest/node';

/** How long a test file runs before it is named, and how often again: far above what the slowest takes. */
const PATIENCE_MS = 180_000;

/**
 * Names the test files that do not end. vitest prints a file when it is done, and its time limits cannot fire in a
 * process that never comes back to its event loop, so that without this a hanging run says nothing of where it hangs.
 */
export class UnfinishedFiles implements Reporter {
  readonly #started = new Map<string, NodeJS.Timeout>();
  readonly #write: (line: string) => void;

  constructor(write: (line: string) => void = (line) => process.stderr.write(`${line}\n`)) {
    this.#write = write;
  }

  onTestModuleQueued({ relativeModuleId: file }: TestModule): void {
    const began = Date.now();
    const name = (): void =>
      this.#write(`${file} has been running for ${Math.round((Date.now() - began) / 1000)} s`);
    this.#started.set(file, setInterval(name, PATIENCE_MS).unref());
  }

  onTestModuleEnd({ relativeModuleId: file }: TestModule): void {
    clearInterval(this.#started.get(file));
    this.#started.delete(file);
  }

  onTestRunEnd(): void {
    for (const timer of this.#started.values()) clearInterval(timer);
    this.#started.clear();
  }
}
