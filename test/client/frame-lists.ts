/**
 * Valid lists of frames by chance: messages whose deltas, tools and ends are interleaved, numbered as a server does; and what a
 * page must show in the end. Written without the code that it tests.
 */
import * as fc from 'fast-check';
import type { Frame, HistoryMessage, Role } from '../../src/client/frame.js';

export interface FrameList {
  readonly frames: readonly Frame[];
  /** What is stored at the end. */
  readonly stored: readonly HistoryMessage[];
}

type Unnumbered<F = Frame> = F extends Frame ? Omit<F, 'seq'> : never;

interface MessagePlan {
  readonly role: Role;
  readonly chunks: readonly string[];
  readonly seal: 'done' | 'other done' | 'flush' | 'error' | 'none';
  readonly hasTool: boolean;
  readonly hasLateDelta: boolean;
}

const plan: fc.Arbitrary<MessagePlan> = fc.record({
  role: fc.constantFrom<Role>('user', 'model'),
  chunks: fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 }), {
    minLength: 1,
    maxLength: 5,
  }),
  seal: fc.constantFrom('done', 'done', 'other done', 'flush', 'error', 'none'),
  hasTool: fc.boolean(),
  hasLateDelta: fc.boolean(),
});

/** Only what the agent says is cut. */
const cuttable = plan.map((message) =>
  message.seal === 'flush' ? { ...message, role: 'model' as const } : message,
);

function sealedText({ seal, chunks }: MessagePlan): string | undefined {
  const text = chunks.join('');
  if (seal === 'done') return text;
  if (seal === 'other done') return `${text}, put right`;
  if (seal === 'flush') return text.slice(0, Math.ceil(text.length / 2));
  return undefined;
}

function framesOf(msg: string, message: MessagePlan): Unnumbered[] {
  const { role, chunks, seal } = message;
  const text = sealedText(message) ?? '';
  const frames: Unnumbered[] = chunks.map((chunk) => ({ type: 'delta', msg, role, text: chunk }));
  const tool = { type: 'tool', msg, callId: `call of ${msg}`, name: 'look_up' } as const;
  if (message.hasTool) frames.splice(1, 0, { ...tool, state: 'running' });
  if (seal === 'done' || seal === 'other done') frames.push({ type: 'done', msg, role, text });
  if (seal === 'flush') frames.push({ type: 'flush', msg, text });
  if (seal === 'error') frames.push({ type: 'error', msg, code: 'busy', message: 'try later', fatal: false });
  if (message.hasTool) frames.push({ ...tool, state: 'done' });
  if (message.hasLateDelta && seal !== 'none') frames.push({ type: 'delta', msg, role, text: 'too late' });
  return frames;
}

/** `msgs` in the order in which they begin, `frames` in the order of `picks`. */
function interleave(plans: readonly MessagePlan[], picks: readonly number[]): FrameList {
  const queues = plans.map((each, index) => framesOf(`m${index}`, each));
  const begun: number[] = [];
  const frames: Frame[] = [];
  for (let turn = 0; queues.some((queue) => queue.length > 0); turn += 1) {
    const open = queues.flatMap((queue, index) => (queue.length > 0 ? [index] : []));
    const index = open[(picks[turn % picks.length] ?? 0) % open.length]!;
    if (!begun.includes(index)) begun.push(index);
    frames.push({ ...queues[index]!.shift()!, seq: frames.length + 1 });
  }
  const stored = begun.flatMap((index) => {
    const text = sealedText(plans[index]!);
    return text === undefined || text === '' ? [] : [{ msg: `m${index}`, role: plans[index]!.role, text }];
  });
  return { frames, stored };
}

export const frameLists: fc.Arbitrary<FrameList> = fc
  .tuple(
    fc.array(cuttable, { minLength: 1, maxLength: 8 }),
    fc.array(fc.nat({ max: 7 }), { minLength: 1, maxLength: 40 }),
  )
  .map(([plans, picks]) => interleave(plans, picks));
