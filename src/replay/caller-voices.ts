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
/** A caller who cuts in lets the answer run for this long. */
const CUT_IN_AFTER_MS = 4_000;

/** What a caller does next: speaks, waits, waits for an answer to end, or for one to be under way. */
type CallerStep =
  | { readonly say: string }
  | { readonly waitMs: number }
  | { readonly hearAnswer: string }
  | { readonly cutIntoAnswer: true };

export interface CallerScript {
  readonly name: string;
  readonly voice: SpeechVoice;
  readonly steps: readonly CallerStep[];
}

/** The callers by the dialogue that answers them. */
export function callerScripts(dialogue: Dialogue): readonly CallerScript[] {
  const turn = (index: number) => ({ hearAnswer: dialogue.turns[index]?.say ?? '' });
  const listening = { hearAnswer: dialogue.interruptions[0]?.say ?? '' };
  return [
    {
      name: 'order-question',
      voice: 'slt',
      steps: [
        { waitMs: GREETING_MS },
        { say: 'Hello, good morning.' },
        turn(0),
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
        { cutIntoAnswer: true },
        { say: 'Wait, stop, I have another question.' },
        listening,
        { say: 'Can I still change the address of my order?' },
        { cutIntoAnswer: true },
        { say: 'Thank you, that is enough.' },
        { hearAnswer: dialogue.interruptions[1]?.say ?? '' },
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
        turn(0),
        { say: 'No.' },
        { cutIntoAnswer: true },
        { say: 'Yes.' },
        listening,
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
  if ('cutIntoAnswer' in step) return ANSWER_DELAY_MS + CUT_IN_AFTER_MS;
  const answer = await spokenText(synthesizer, AGENT_VOICE, step.hearAnswer);
  return ANSWER_DELAY_MS + (answer.length / SPEECH_RATE_HZ) * 1_000 + CALLER_DELAY_MS;
}
