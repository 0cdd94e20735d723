/**
 * An agent that watches things and speaks up by itself: a stock's price, the caller's own line, the pictures of a web client.
 * Prices and the count of people are demonstrations; the sound is really listened to.
 */
import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { defineAgent, defineTool, type InputFrame } from 'earshot';
import { z } from 'zod';
import { type CallerSound, callerSound } from './tools/caller-sound.js';

/** Seconds to wait, and the price that is then told. */
const PRICES = [
  [4, 300],
  [4, 400],
  [20, 900],
  [20, 500],
] as const;

/** How often the caller's input is looked at. */
const LOOK_MS = 500;
/** The newest second of 20 ms frames. */
const WINDOW_FRAMES = 50;
/** In the picture demonstration. */
const PEOPLE_MAX = 4;

const monitorStockPrice = defineTool({
  name: 'monitor_stock_price',
  description:
    'Watches the price of a stock and reports each change by itself, until it is stopped. The prices are made up for demonstration.',
  parameters: z.object({
    stock_symbol: z
      .string()
      .trim()
      .min(1)
      .max(12)
      .transform((symbol) => symbol.replace(/^\$/, '').toUpperCase())
      .describe('Such as XYZ'),
  }),
  async *execute({ stock_symbol }, { signal }) {
    for (const [seconds, price] of PRICES) {
      await wait(seconds * 1_000, undefined, { signal });
      yield `The price for ${stock_symbol} is ${price}`;
    }
  },
});

const REPORTS: Readonly<Record<CallerSound, string>> = {
  silent: "The caller's line has become silent",
  speaking: 'The caller is speaking',
  noisy: "There is a steady noise on the caller's line",
};

const monitorCallerAudio = defineTool({
  name: 'monitor_caller_audio',
  description:
    "Listens to the caller's line and reports by itself when it turns silent, spoken or noisy, until it is stopped. It tells sound by its energy and understands no words.",
  inputStream: true,
  async *execute(_args, { inputStream, signal }) {
    let newest: Uint8Array[] = [];
    const take = (frame: InputFrame): void => {
      newest.push(frame.data);
      newest = newest.slice(-WINDOW_FRAMES);
    };
    // Ends with the stream, which ends with the tool.
    void forEach(inputStream, take);
    // The line begins silent, so that the first report is news.
    let last: CallerSound = 'silent';
    for (;;) {
      await wait(LOOK_MS, undefined, { signal });
      const now: CallerSound = callerSound(newest) ?? last;
      if (now !== last) yield { sound: now, message: `${REPORTS[now]}.` };
      last = now;
    }
  },
});

async function forEach(frames: AsyncIterable<InputFrame> | undefined, take: (frame: InputFrame) => void) {
  for await (const frame of frames ?? []) take(frame);
}

const monitorVideoStream = defineTool({
  name: 'monitor_video_stream',
  description:
    'Watches the pictures of a web client and reports by itself when the number of people in them changes, until it is stopped. A demonstration: the number is made from the bytes of the picture, nothing is recognised in it. A telephone has no pictures.',
  inputStream: 'image',
  async *execute(_args, { inputStream, signal }) {
    let last = 0;
    for (;;) {
      await wait(LOOK_MS, undefined, { signal });
      const picture = inputStream?.drainLatest();
      const people = picture === undefined ? last : pretendedPeople(picture.data);
      if (people !== last) yield { people, message: `There are now ${people} people in the picture.` };
      last = people;
    }
  },
});

/** The same picture always has as many. */
function pretendedPeople(picture: Uint8Array): number {
  const [byte = 0] = createHash('sha256').update(picture).digest();
  return byte % (PEOPLE_MAX + 1);
}

export default defineAgent({
  name: 'monitor',
  greeting:
    'Hello, this is the watch desk, an automated assistant. Tell me what to keep an eye on: a stock price, or the sound of your line.',
  instruction: [
    'You watch things for the caller and speak up when something changes. Use your monitoring tools; they run by themselves and report to you.',
    'When a report comes, tell the caller in one short sentence, and ask nothing. Say nothing while there is no report.',
    'Do not ask which details to watch: start at once with what the caller named.',
    'When the caller wants a monitor to end, call stop_streaming with the name of its function.',
    'Prices and counts of people are made up for demonstration; say so if you are asked about them.',
    'When the caller has said goodbye, say goodbye in one short sentence and then call end_call.',
  ].join('\n'),
  tools: [monitorStockPrice, monitorCallerAudio, monitorVideoStream],
  runConfig: {
    speechConfig: {
      voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Charon' } },
      languageCode: 'en-US',
    },
  },
});
