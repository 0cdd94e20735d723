/**
 * The text model for tests, over real HTTP: keeps every request of `streamGenerateContent` and answers it piece by piece as the
 * test says. Put its `onRequest` into the script of a ScriptedGemini.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

type JsonObject = Record<string, unknown>;

export interface TextContents {
  readonly role: string;
  readonly parts: readonly { readonly text?: string; readonly functionResponse?: JsonObject }[];
}

/** One request, and its answer as far as it has got. */
export class AskedText {
  readonly path: string;
  readonly contents: readonly TextContents[];
  readonly instruction: string;
  /** The client has gone, or the answer is over. */
  isClosed = false;
  readonly #response: ServerResponse;

  constructor(path: string, body: JsonObject, response: ServerResponse) {
    this.path = path;
    this.contents = body['contents'] as readonly TextContents[];
    const { parts } = body['systemInstruction'] as TextContents;
    this.instruction = parts.map((part) => part.text ?? '').join('');
    this.#response = response;
    response.on('close', () => (this.isClosed = true));
  }

  /** What the model is told of the conversation, a line a content. */
  get told(): string[] {
    return this.contents.map(
      ({ role, parts }) => `${role}: ${parts.map((part) => part.text ?? '[response]').join('')}`,
    );
  }

  says(text: string, finishReason?: string): void {
    this.#send([{ text }], finishReason);
  }

  calls(name: string, id: string, finishReason = 'STOP'): void {
    this.#send([{ functionCall: { name, id, args: { secret: 'argument-of-the-call' } } }], finishReason);
    this.#response.end();
  }

  /** The whole answer, a piece a chunk. */
  answers(...pieces: readonly string[]): void {
    for (const [at, piece] of pieces.entries())
      this.says(piece, at === pieces.length - 1 ? 'STOP' : undefined);
    this.#response.end();
  }

  /** Ends the answer without saying why. */
  ends(): void {
    this.#response.end();
  }

  refuses(status: number): void {
    this.#response.writeHead(status, { 'Content-Type': 'application/json' });
    this.#response.end(
      JSON.stringify({ error: { code: status, message: 'secret-of-the-model', status: 'X' } }),
    );
  }

  /** Cuts the socket. */
  breaks(): void {
    this.#response.destroy();
  }

  #send(parts: readonly JsonObject[], finishReason: string | undefined): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const candidate = {
      content: { role: 'model', parts },
      ...(finishReason !== undefined && { finishReason }),
    };
    this.#response.write(`data: ${JSON.stringify({ candidates: [candidate] })}\n\n`);
  }
}

export class ScriptedTextModel {
  readonly asked: AskedText[] = [];
  /** What answers; may be changed at any time. */
  answer: (asked: AskedText) => void = (asked) => asked.answers('Very', ' well.');

  readonly onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as JsonObject;
      const asked = new AskedText(request.url ?? '', body, response);
      this.asked.push(asked);
      this.answer(asked);
    });
  };
}
