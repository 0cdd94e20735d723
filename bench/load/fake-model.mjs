/**
 * A Gemini Live service for load: it accepts `…BidiGenerateContent`, answers `setup`, and then talks nearly all the
 * time, faster than real time and in uneven chunks of 7,680 to 15,360 bytes as the real one does, with transcription.
 * Every other turn is cut off with `interrupted`, in the midst of what the caller hears. It keeps no timers: `tick` is
 * called every 20 ms per call. What it receives is read no further than it takes to know a caller's frame again.
 */
import { createServer } from 'node:http';
import { PIECE_READERS } from './caller-frames.mjs';
import { FrameReader, OPCODE, acceptKey, encodeFrame, frameText } from './websocket-wire.mjs';

const BYTES_PER_MS = 48;
/** PCM16 24 kHz, drawn from in turn; 8,190 and 10,002 are no whole number of 20 ms frames. */
const CHUNK_BYTES = [7_680, 11_520, 8_190, 15_360, 9_600, 13_440, 10_002, 12_480];
/** The first chunk of a turn is often a short one. */
const FIRST_CHUNK_BYTES = 2_400;
/** How much faster than real time, drawn from in turn; the mean is about 3. */
const SPEEDS = [2, 5, 3, 8, 2.5, 4, 2, 6];
const WHOLE_TURN_MS = 2_000;
const INTERRUPTED_TURN_MS = 2_500;
/** An interrupted turn is heard for between these. */
const HEARD_MIN_MS = 800;
const HEARD_MAX_MS = 2_200;
const GAP_AFTER_INTERRUPTED_MS = 150;
const GAP_AFTER_WHOLE_MS = 120;
/** A turn whose sound never arrives is given up after its length and this. */
const PATIENCE_MS = 3_000;

function message(body) {
  return encodeFrame(OPCODE.binary, JSON.stringify(body));
}

/** Something like a voice: harmonics of 140 Hz under an envelope of 4 syllables a second. */
function audioMessage(bytes) {
  const pcm = Buffer.alloc(bytes);
  for (let i = 0; i * 2 < bytes; i += 1) {
    const seconds = i / 24_000;
    let sum = 0;
    for (let h = 1; h <= 12; h += 1) sum += Math.sin(2 * Math.PI * 140 * h * seconds + h * h) / h;
    pcm.writeInt16LE(Math.round(6_000 * sum * (0.6 + 0.4 * Math.sin(2 * Math.PI * 4 * seconds))), i * 2);
  }
  const inlineData = { mimeType: 'audio/pcm;rate=24000', data: pcm.toString('base64') };
  return {
    ms: bytes / BYTES_PER_MS,
    frame: message({ serverContent: { modelTurn: { role: 'model', parts: [{ inlineData }] } } }),
  };
}

const CHUNKS = CHUNK_BYTES.map(audioMessage);
const FIRST_CHUNK = audioMessage(FIRST_CHUNK_BYTES);
const TEXTS = [
  ' your order',
  ' left the',
  ' warehouse yesterday',
  ' evening, and',
  ' it should',
  ' arrive soon.',
].map((text) => message({ serverContent: { outputTranscription: { text } } }));
const SETUP_COMPLETE = message({ setupComplete: {} });
const GENERATION_COMPLETE = message({ serverContent: { generationComplete: true } });
const TURN_COMPLETE = message({
  serverContent: { turnComplete: true },
  usageMetadata: { promptTokenCount: 900, responseTokenCount: 60, totalTokenCount: 960 },
});
const INTERRUPTED = message({ serverContent: { interrupted: true } });
const CALLER_TEXT = message({ serverContent: { inputTranscription: { text: ' and where is it now?' } } });

/** One connection of the server under test. */
export class ModelConnection {
  #socket;
  #reader = new FrameReader((...frame) => this.#onFrame(...frame));
  #call;
  #open = true;
  #onReady;
  #audioAt = -1;
  #audioLength = -1;
  #piece;
  #audioPieces = 0;
  #window = Buffer.alloc(64);
  #turn = 0;
  #turnMs = 0;
  #interruptAfterMs = 0;
  #nextChunk = 0;
  #nextChunkAt = 0;
  #nextTurnAt = 0;
  #speaking = false;
  #generating = false;

  constructor(socket, head, onReady) {
    this.#socket = socket;
    this.#onReady = onReady;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#reader.push(chunk));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => (this.#open = false));
    if (head.length > 0) this.#reader.push(head);
  }

  get open() {
    return this.#open;
  }

  /** Begins to talk; `call` holds `ledger`, `frames`, `measured` and its `index`. */
  attach(call, now) {
    this.#call = call;
    this.#turn = call.index;
    this.#nextChunk = call.index * 3;
    this.#nextTurnAt = now;
  }

  /** Every 20 ms. */
  tick(now) {
    if (!this.#open || this.#call === undefined) return;
    if (!this.#speaking) {
      if (now >= this.#nextTurnAt) this.#beginTurn(now);
      return;
    }
    const { ledger, measured } = this.#call;
    if (ledger.awaitsClear) {
      if (now - this.#nextTurnAt < PATIENCE_MS) return;
      measured.clearsMissed += 1;
      this.#endTurn(now);
      return;
    }
    if (this.#interrupts && ledger.heardMs(now) >= this.#interruptAfterMs) {
      this.#interrupt(now);
      return;
    }
    if (this.#generating) {
      this.#generate(now);
      return;
    }
    const lost = now > this.#nextChunkAt + this.#turnMs + PATIENCE_MS;
    if ((ledger.allArrived && now >= ledger.queueEndAt) || lost) {
      if (lost) measured.turnsCutShort += 1;
      this.#socket.write(TURN_COMPLETE);
      this.#endTurn(now + GAP_AFTER_WHOLE_MS);
    }
  }

  /** The server has carried out `clear`: the next turn begins soon. */
  cleared(now) {
    if (this.#speaking) this.#endTurn(now + GAP_AFTER_INTERRUPTED_MS);
  }

  get #interrupts() {
    return this.#turn % 2 === 1;
  }

  #beginTurn(now) {
    this.#call.ledger.beginTurn();
    this.#speaking = true;
    this.#generating = true;
    this.#turnMs = this.#interrupts ? INTERRUPTED_TURN_MS : WHOLE_TURN_MS;
    const draw = ((this.#call.index * 7919 + this.#turn * 104_729) % 1000) / 1000;
    this.#interruptAfterMs = HEARD_MIN_MS + draw * (HEARD_MAX_MS - HEARD_MIN_MS);
    this.#nextChunkAt = now;
    this.#generate(now);
  }

  #generate(now) {
    const { ledger } = this.#call;
    while (this.#nextChunkAt <= now && ledger.sentMs < this.#turnMs) {
      const chunk = ledger.sentMs === 0 ? FIRST_CHUNK : CHUNKS[this.#nextChunk % CHUNKS.length];
      ledger.chunkSent(chunk.ms, performance.now());
      this.#socket.write(chunk.frame);
      this.#socket.write(TEXTS[this.#nextChunk % TEXTS.length]);
      this.#nextChunkAt += chunk.ms / SPEEDS[this.#nextChunk % SPEEDS.length];
      this.#nextChunk += 1;
    }
    if (ledger.sentMs < this.#turnMs) return;
    this.#generating = false;
    this.#socket.write(GENERATION_COMPLETE);
  }

  #interrupt(now) {
    this.#nextTurnAt = now;
    this.#call.ledger.interruptedSent(performance.now());
    this.#socket.write(INTERRUPTED);
    this.#socket.write(TURN_COMPLETE);
    this.#socket.write(CALLER_TEXT);
  }

  #endTurn(nextAt) {
    this.#speaking = false;
    this.#generating = false;
    this.#nextTurnAt = nextAt;
    this.#turn += 1;
  }

  #onFrame(opcode, bytes, start, length, maskAt) {
    if (opcode === OPCODE.text || opcode === OPCODE.binary) this.#onMessage(bytes, start, length, maskAt);
    else if (opcode === OPCODE.ping) {
      this.#socket.write(encodeFrame(OPCODE.pong, frameText(bytes, start, length, maskAt)));
    } else if (opcode === OPCODE.close) this.#socket.end(encodeFrame(OPCODE.close, ''));
  }

  #onMessage(bytes, start, length, maskAt) {
    if (this.#call !== undefined) this.#call.measured.modelMessages += 1;
    if (length === this.#audioLength) {
      this.#readAudio(bytes, start, length, maskAt);
      return;
    }
    const text = frameText(bytes, start, length, maskAt);
    if (this.#learnAudio(text)) this.#readAudio(bytes, start, length, maskAt);
    else if (this.#onReady !== undefined && text.startsWith('{"setup"')) {
      this.#socket.write(SETUP_COMPLETE);
      this.#onReady(this);
      this.#onReady = undefined;
    }
  }

  /** Finds where the base64 begins in a realtimeInput; the next ones of the same length are taken to be alike. */
  #learnAudio(text) {
    if (!text.includes('"realtimeInput"')) return false;
    const found = /"data":"([A-Za-z0-9+/]+=*)"/.exec(text);
    if (found === null) return false;
    this.#audioAt = found.index + '"data":"'.length;
    this.#audioLength = text.length;
    this.#piece = text.includes('mulaw') ? PIECE_READERS.mulaw8k : PIECE_READERS.pcm16k;
    this.#audioPieces = Math.max(1, Math.floor((found[1].length * 3) / 4 / this.#piece.bytes));
    return true;
  }

  #readAudio(bytes, start, length, maskAt) {
    if (this.#call === undefined) return;
    const now = performance.now();
    const { bytes: pieceBytes, windowBytes, level } = this.#piece;
    for (let piece = 0; piece < this.#audioPieces; piece += 1) {
      const middle = piece * pieceBytes + (pieceBytes >> 1) - (windowBytes >> 1);
      const window = this.#decode(bytes, start, maskAt, middle, windowBytes);
      const found = level(window);
      if (found !== -1) this.#call.frames.arrived(found, now);
    }
  }

  /** `count` decoded bytes, from an even offset at or just before byte `from` of the sound. */
  #decode(bytes, start, maskAt, from, count) {
    // Groups of 3 bytes are 4 characters; a start at a multiple of 6 also keeps samples of 2 bytes whole.
    const group = Math.floor(from / 6) * 2;
    const at = this.#audioAt + group * 4;
    const characters = Math.ceil(count / 3) * 4;
    if (this.#window.length < characters) this.#window = Buffer.alloc(characters);
    for (let i = 0; i < characters; i += 1) {
      this.#window[i] = bytes[start + at + i] ^ bytes[maskAt + ((at + i) & 3)];
    }
    return Buffer.from(this.#window.toString('latin1', 0, characters), 'base64').subarray(0, count);
  }
}

/** The service: `listen` first, then `nextConnection` for each call. */
export class FakeModel {
  #server = createServer((_request, response) => response.writeHead(404).end());
  #connections = [];
  #waiting;
  /** Connections that came when no call was being placed. */
  strays = 0;

  constructor() {
    this.#server.on('upgrade', (request, socket, head) => this.#onUpgrade(request, socket, head));
  }

  /** Resolves to the port. */
  listen() {
    return new Promise((resolve) => {
      this.#server.listen(0, '127.0.0.1', () => resolve(this.#server.address().port));
    });
  }

  /** Resolves to the next connection that has been set up. */
  nextConnection() {
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  get openConnections() {
    return this.#connections.filter((connection) => connection.open).length;
  }

  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #onUpgrade(request, socket, head) {
    if (!new URL(request.url.replace(/^\/+/, '/'), 'http://model').pathname.endsWith('BidiGenerateContent')) {
      socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n');
      return;
    }
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        `Sec-WebSocket-Accept: ${acceptKey(request.headers['sec-websocket-key'])}\r\n\r\n`,
    );
    this.#connections.push(
      new ModelConnection(socket, head, (connection) => {
        const waiting = this.#waiting;
        this.#waiting = undefined;
        if (waiting === undefined) this.strays += 1;
        else waiting(connection);
      }),
    );
  }
}
