/** A client of the rehearsal service by the real SDK, which keeps what it was sent, in order. */
import { once } from 'node:events';
import {
  GoogleGenAI,
  type LiveConnectConfig,
  type LiveServerMessage,
  Modality,
  type Session,
} from '@google/genai';
import { WebSocket } from 'ws';
import type { VirtualClock } from '../../../src/replay/virtual-clock.js';

export interface RehearsalClient {
  readonly session: Session;
  readonly messages: LiveServerMessage[];
  readonly closes: { code: number; reason: string }[];
}

export async function connectClient(
  url: string,
  config: LiveConnectConfig = {},
  model = 'gemini-3.8-live',
): Promise<RehearsalClient> {
  const messages: LiveServerMessage[] = [];
  const closes: { code: number; reason: string }[] = [];
  const ai = new GoogleGenAI({ apiKey: 'rehearsal', apiVersion: 'v1beta', httpOptions: { baseUrl: url } });
  const session = await ai.live.connect({
    model,
    config: {
      responseModalities: [Modality.AUDIO],
      inputAudioTranscription: {},
      outputAudioTranscription: {},
      ...config,
    },
    callbacks: {
      onmessage: (message) => void messages.push(message),
      onclose: ({ code, reason }) => void closes.push({ code, reason }),
    },
  });
  return { session, messages, closes };
}

/** What a setup meets that is sent as it is: the first message, or the code and reason of the close. */
export async function answerToSetup(url: string, setup: object): Promise<string> {
  const webSocket = new WebSocket(`${url.replace('http', 'ws')}/ws/x.BidiGenerateContent?key=k`);
  await once(webSocket, 'open');
  webSocket.send(JSON.stringify({ setup }));
  const first = await Promise.race([once(webSocket, 'close'), once(webSocket, 'message')]);
  webSocket.terminate();
  return typeof first[0] === 'number' ? `${first[0]} ${String(first[1])}` : String(first[0]);
}

/** Moves the clock until the condition holds; the test's own timeout is the bound. */
export async function until(clock: VirtualClock, condition: () => boolean, stepMs = 10): Promise<void> {
  while (!condition()) {
    clock.advance(stepMs);
    await settle();
  }
}

/** Lets sockets and the speech worker do what is ready, without moving the clock. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}

/** Waits for a condition that needs no time to pass. */
export async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await settle();
}

/** The kinds of messages in order, one word each; runs of the same kind count once. */
export function order(messages: readonly LiveServerMessage[]): string[] {
  const kinds = messages.flatMap(({ serverContent, toolCall, toolCallCancellation }) => {
    const found: string[] = [];
    if (serverContent?.interrupted) found.push('interrupted');
    if (serverContent?.modelTurn) found.push('audio');
    if (serverContent?.inputTranscription) found.push('inputTranscription');
    if (serverContent?.generationComplete) found.push('generationComplete');
    if (serverContent?.turnComplete) found.push('turnComplete');
    if (toolCall) found.push('toolCall');
    if (toolCallCancellation) found.push('toolCallCancellation');
    return found;
  });
  return kinds.filter((kind, index) => kind !== kinds[index - 1]);
}

/** Every chunk of sound. */
export function chunks(messages: readonly LiveServerMessage[]): Buffer[] {
  return messages.flatMap(({ serverContent }) =>
    (serverContent?.modelTurn?.parts ?? []).map((part) => Buffer.from(part.inlineData?.data ?? '', 'base64')),
  );
}

export function spokenWords(messages: readonly LiveServerMessage[]): string {
  return messages.map(({ serverContent }) => serverContent?.outputTranscription?.text ?? '').join('');
}

export function count(messages: readonly LiveServerMessage[], kind: string): number {
  return messages.flatMap((message) => order([message])).filter((found) => found === kind).length;
}

/** Sends sound as the server does, 20 ms a message, without waiting. */
export function sendSound(session: Session, pcm16k: Int16Array): void {
  const bytes = Buffer.from(pcm16k.buffer, pcm16k.byteOffset, pcm16k.byteLength);
  for (let at = 0; at < bytes.length; at += 640) {
    const data = bytes.subarray(at, at + 640).toString('base64');
    session.sendRealtimeInput({ audio: { mimeType: 'audio/pcm;rate=16000', data } });
  }
}
