/**
 * The callers that ship in `fixtures/callers`: what each says, in which voice, and how long it waits for the agent.
 * A recording cannot listen, so each pause is as long as the rehearsal model takes to answer at that point; the
 * dialogue's own texts are spoken once to find that out.
 */
import type { Dialogue } from '../model/rehearsal/dialogue.js';
import {
  SPEECH_RATE_HZ,
  type SpeechSynthesizer,
  type SpeechVoice,
} from '../model/rehearsal/speech-synthesizer.js';
import { joined, spokenText } from './spoken-text.js';
import { LINE_RATE_HZ, toLineRate } from './telephone-line.js';

/** Voice of the agent that the pauses are made for: the shipped agent's, as the rehearsal maps it. */
const AGENT_VOICE: SpeechVoice = 'slt';
/** From the caller's last word to the agent's first: the silence that ends a turn, thinking, and the line. */
const ANSWER_DELAY_MS = 1_300;
/** From the agent's last word to the caller's next. */
const CALLER_DELAY_MS = 1_200;
/** The shipped greeting takes about six seconds, and the model is connected first. */
const GREETING_MS = 8_500;
/** A caller who cuts in lets the answer run for this long, behind what it hears out. */
const CUT_IN_AFTER_MS = 4_000;

/** What a caller does next: speaks, waits, waits for an answer to end, or for one to be under way behind some words. */
type CallerStep =
  | { readonly say: string }
  | { readonly waitMs: number }
  | { readonly hearAnswer: string }
  | { readonly cutInBehind: string };

export interface CallerScript {
  readonly name: string;
  readonly voice: SpeechVoice;
  readonly steps: readonly CallerStep[];
}

/** The callers by the dialogue that answers them. */
export function callerScripts(dialogue: Dialogue): readonly CallerScript[] {
  const { disclosure, turns, interruptions } = dialogue;
  const turn = (index: number) => ({ hearAnswer: turns[index]?.say ?? '' });
  const disclosureAndTurn = { hearAnswer: `${disclosure} ${turns[0]?.say ?? ''}` };
  const interruption = (index: number) => ({ hearAnswer: interruptions[index]?.say ?? '' });
  return [
    {
      name: 'order-question',
      voice: 'slt',
      steps: [
        { waitMs: GREETING_MS },
        { say: 'Hello, good morning.' },
        disclosureAndTurn,
        { say: 'I would like to know where my order is. It should have been here on Friday.' },
        turn(1),
        { say: 'No, that was all. Thank you very much. Goodbye.' },
        turn(2),
      ],
    },
    {
      name: 'barge-in',
      voice: 'rms',
      steps: [
        { waitMs: GREETING_MS },
        { say: 'Hello.' },
        { cutInBehind: disclosure },
        { say: 'Wait, stop, I have another question.' },
        interruption(0),
        { say: 'Can I still change the address of my order?' },
        { cutInBehind: '' },
        { say: 'Thank you, that is enough.' },
        interruption(1),
        { say: 'No. Goodbye.' },
        turn(2),
      ],
    },
    {
      name: 'short-answers',
      voice: 'awb',
      steps: [
        { waitMs: GREETING_MS },
        { say: 'Yes.' },
        disclosureAndTurn,
        { say: 'No.' },
        { cutInBehind: '' },
        { say: 'Yes.' },
        interruption(0),
      ],
    },
    { name: 'silent', voice: 'slt', steps: [{ waitMs: 40_000 }] },
  ];
}

/** A caller's clean sound at line rate, pauses as digital silence. */
export async function callerSound(
  synthesizer: SpeechSynthesizer,
  script: CallerScript,
): Promise<Float64Array> {
  const parts: Float64Array[] = [];
  for (const step of script.steps) {
    if ('say' in step) parts.push(toLineRate(await spokenText(synthesizer, script.voice, step.say)));
    else parts.push(new Float64Array(Math.round((LINE_RATE_HZ * (await waitMs(synthesizer, step))) / 1_000)));
  }
  return joined(parts);
}

async function waitMs(
  synthesizer: SpeechSynthesizer,
  step: Exclude<CallerStep, { readonly say: string }>,
): Promise<number> {
  if ('waitMs' in step) return step.waitMs;
  const isCutIn = 'cutInBehind' in step;
  const heard = await spokenText(synthesizer, AGENT_VOICE, isCutIn ? step.cutInBehind : step.hearAnswer);
  const heardMs = (heard.length / SPEECH_RATE_HZ) * 1_000;
  return ANSWER_DELAY_MS + heardMs + (isCutIn ? CUT_IN_AFTER_MS : CALLER_DELAY_MS);
}
