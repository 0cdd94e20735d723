/** One server of the soak: the built package as a process of its own, and what can be seen of it from outside. */
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ServerProcess } from '../support/server-process.js';
import { AGENTS } from './call-plan.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const PAGE_BYTES = 4_096;
const TICKS_PER_SECOND = 100;

/** Lays the built package out in `root`, with the soak's agents in the place of those that ship. */
export function layOut(root: string): void {
  for (const name of ['dist', 'package.json'])
    cpSync(join(PROJECT, name), join(root, name), { recursive: true });
  symlinkSync(join(PROJECT, 'node_modules'), join(root, 'node_modules'));
  mkdirSync(join(root, 'agents'));
  for (const name of AGENTS) {
    const module = join(PROJECT, 'test/soak/agents', `${name}.ts`);
    writeFileSync(join(root, 'agents', `${name}.ts`), `export { default } from ${JSON.stringify(module)};\n`);
  }
}

/** What a process takes. Where there is no /proc, zeros. */
export interface Usage {
  readonly residentMb: number;
  readonly sockets: number;
  readonly cpuMs: number;
}

export function usageOf(pid: number): Usage {
  try {
    const resident = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
    const times = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    const sockets = readdirSync(`/proc/${pid}/fd`).filter((fd) => isSocket(`/proc/${pid}/fd/${fd}`)).length;
    return {
      residentMb: Math.round((resident * PAGE_BYTES) / 1024 / 1024),
      sockets,
      cpuMs: ((Number(times[11]) + Number(times[12])) * 1_000) / TICKS_PER_SECOND,
    };
  } catch {
    return { residentMb: 0, sockets: 0, cpuMs: 0 };
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:');
  } catch {
    return false;
  }
}

export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

export class SoakServer {
  readonly name: string;
  readonly url: string;
  readonly process: ServerProcess;
  isGone = false;

  private constructor(name: string, url: string, process: ServerProcess) {
    this.name = name;
    this.url = url;
    this.process = process;
    void process.exit.then(() => (this.isGone = true));
  }

  static async start(
    name: string,
    root: string,
    settings: Readonly<Record<string, string>>,
  ): Promise<SoakServer> {
    const process = new ServerProcess(settings, root);
    return new SoakServer(name, await process.url(), process);
  }

  get usage(): Usage {
    return usageOf(this.process.pid);
  }

  /** Undefined where nobody answers any more. */
  async get(path: string): Promise<Answer | undefined> {
    if (this.isGone) return undefined;
    try {
      const response = await fetch(`${this.url}${path}`);
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    } catch {
      return undefined;
    }
  }

  /** Timers that keep Node's loop alive, by its own count. */
  async timers(): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    return Number(/^\w*nodejs_active_resources\{type="Timeout"\} (\d+)/m.exec(text)?.[1] ?? Number.NaN);
  }

  /** What `/debug/runs` counts, without what is nothing. */
  async alive(): Promise<Record<string, number>> {
    const { body } = (await this.get('/debug/runs')) ?? { body: {} };
    return Object.fromEntries(Object.entries(body).filter(([, count]) => count !== 0)) as Record<
      string,
      number
    >;
  }
}
