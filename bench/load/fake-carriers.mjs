/**
 * A simulated phone line: Twilio's side of one call. It posts the voice webhook, reads the TwiML, opens the media socket,
 * sends a 20 ms frame whenever `sendFrame` is called, and plays what it gets in real time on paper: a mark comes back
 * when the sound before it would have been played, at once where nothing is queued, and all of them on `clear`.
 */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { FRAME_PAYLOADS } from './caller-frames.mjs';
import { FrameReader, OPCODE, encodeFrame, frameText } from './websocket-wire.mjs';

const ACCOUNT_SID = `AC${'0'.repeat(32)}`;
const HANDSHAKE_TIMEOUT_MS = 10_000;

function attribute(tag, name) {
  const value = new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1];
  return value
    ?.replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&amp;', '&');
}

/** The stream's URL and parameters from a voice answer; throws where it is no `<Stream>`. */
export function readTwiml(twiml) {
  const stream = /<Stream\b[^>]*>/.exec(twiml)?.[0];
  const url = stream === undefined ? undefined : attribute(stream, 'url');
  if (url === undefined) throw new Error(`the webhook answered with no stream: ${twiml.slice(0, 300)}`);
  const parameters = {};
  for (const [tag] of twiml.matchAll(/<Parameter\b[^>]*>/g)) {
    parameters[attribute(tag, 'name')] = attribute(tag, 'value');
  }
  return { url, parameters };
}

function base64Bytes(text) {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  return (text.length / 4) * 3 - padding;
}

export class CarrierCall {
  #call;
  #bytesPerMs;
  #socket;
  #mask = randomBytes(4);
  #reader = new FrameReader((...frame) => this.#onFrame(...frame));
  #callSid;
  #streamSid;
  #streaming = false;
  #hungUp = false;
  #sequence = 0;
  #chunk = 0;
  /** Marks not yet returned, oldest first: `{ name, dueAt }`. */
  #marks = [];

  /** `call` holds `index`, `ledger`, `frames`, `measured` and `model`; `bytesPerMs` is that of the payload. */
  constructor(call, bytesPerMs) {
    this.#call = call;
    this.#bytesPerMs = bytesPerMs;
    this.#callSid = `CA${randomBytes(16).toString('hex')}`;
    this.#streamSid = `MZ${randomBytes(16).toString('hex')}`;
  }

  /** From the webhook to `start` sent. Rejects where the server refuses. */
  async place(serverUrl) {
    const answer = await fetch(new URL('/twilio/voice', serverUrl), {
      method: 'POST',
      body: new URLSearchParams({
        CallSid: this.#callSid,
        AccountSid: ACCOUNT_SID,
        From: `+1500555${String(this.#call.index).padStart(4, '0')}`,
        To: '+15005550006',
        CallStatus: 'ringing',
        Direction: 'inbound',
        ApiVersion: '2010-04-01',
      }),
    });
    const twiml = await answer.text();
    if (!answer.ok) throw new Error(`the webhook answered ${answer.status}: ${twiml.slice(0, 300)}`);
    const { url, parameters } = readTwiml(twiml);
    await this.#openSocket(new URL(url), new URL(serverUrl));
    this.#send({ event: 'connected', protocol: 'Call', version: '1.0.0' });
    this.#send({
      event: 'start',
      sequenceNumber: String((this.#sequence += 1)),
      start: {
        accountSid: ACCOUNT_SID,
        streamSid: this.#streamSid,
        callSid: this.#callSid,
        tracks: ['inbound'],
        mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
        customParameters: parameters,
      },
      streamSid: this.#streamSid,
    });
    this.#streaming = true;
  }

  /** One frame of the caller; every 20 ms. */
  sendFrame() {
    if (!this.#streaming) return;
    const { frames } = this.#call;
    this.#sequence += 1;
    this.#chunk += 1;
    const text =
      `{"event":"media","sequenceNumber":"${this.#sequence}","media":{"track":"inbound","chunk":"${this.#chunk}"` +
      `,"timestamp":"${(this.#chunk - 1) * 20}","payload":"${FRAME_PAYLOADS[frames.nextLevel]}"}` +
      `,"streamSid":"${this.#streamSid}"}`;
    const frame = encodeFrame(OPCODE.text, text, this.#mask);
    frames.sent(performance.now());
    this.#socket.write(frame);
  }

  /** Returns the marks whose sound has been played; every 20 ms. */
  returnMarks(now) {
    while (this.#marks.length > 0 && this.#marks[0].dueAt <= now) this.#returnMark(this.#marks.shift().name);
  }

  /** `stop`, then the close that follows it. */
  hangUp() {
    if (!this.#streaming) return;
    this.#streaming = false;
    this.#hungUp = true;
    this.#send({
      event: 'stop',
      sequenceNumber: String((this.#sequence += 1)),
      stop: { accountSid: ACCOUNT_SID, callSid: this.#callSid },
      streamSid: this.#streamSid,
    });
    this.#socket.end(encodeFrame(OPCODE.close, Buffer.from([0x03, 0xe8]), this.#mask));
  }

  destroy() {
    this.#socket?.destroy();
  }

  #send(body) {
    this.#socket.write(encodeFrame(OPCODE.text, JSON.stringify(body), this.#mask));
  }

  #returnMark(name) {
    if (!this.#streaming) return;
    this.#send({
      event: 'mark',
      sequenceNumber: String((this.#sequence += 1)),
      streamSid: this.#streamSid,
      mark: { name },
    });
  }

  /** The TwiML says `wss`; the server under test is on loopback, without TLS, where the webhook was posted. */
  #openSocket(url, server) {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: server.hostname, port: Number(server.port) });
      const timer = setTimeout(() => socket.destroy(new Error('no handshake in time')), HANDSHAKE_TIMEOUT_MS);
      this.#socket = socket;
      socket.setNoDelay(true);
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('the media socket was closed in the handshake')));
      socket.write(
        `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${server.host}\r\nUpgrade: websocket\r\n` +
          `Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n` +
          `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
      );
      let head = Buffer.alloc(0);
      const onHead = (chunk) => {
        head = Buffer.concat([head, chunk]);
        const end = head.indexOf('\r\n\r\n');
        if (end === -1) return;
        clearTimeout(timer);
        socket.off('data', onHead);
        const status = head.toString('latin1', 9, 12);
        if (status !== '101') {
          socket.destroy();
          reject(new Error(`the media socket was answered with ${status}`));
          return;
        }
        this.#followSocket(socket, head.subarray(end + 4));
        resolve();
      };
      socket.on('data', onHead);
    });
  }

  #followSocket(socket, head) {
    socket.on('data', (chunk) => this.#reader.push(chunk));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#streaming = false;
      if (!this.#hungUp) this.#call.measured.callsDropped += 1;
    });
    if (head.length > 0) this.#reader.push(head);
  }

  #onFrame(opcode, bytes, start, length, maskAt) {
    if (opcode === OPCODE.text) {
      this.#onMessage(JSON.parse(frameText(bytes, start, length, maskAt)), performance.now());
    } else if (opcode === OPCODE.ping) {
      this.#socket.write(
        encodeFrame(OPCODE.pong, Buffer.from(bytes.subarray(start, start + length)), this.#mask),
      );
    } else if (opcode === OPCODE.close) this.#socket.end();
  }

  #onMessage(message, now) {
    const { ledger, measured, model } = this.#call;
    measured.carrierMessages += 1;
    if (message.event === 'media') {
      ledger.mediaArrived(base64Bytes(message.media.payload) / this.#bytesPerMs, now);
    } else if (message.event === 'mark') {
      this.#marks.push({ name: message.mark.name, dueAt: ledger.queueEndAt });
      if (ledger.queueEndAt <= now) this.returnMarks(now);
    } else if (message.event === 'clear') {
      const asked = ledger.awaitsClear;
      ledger.clearArrived(now);
      for (const mark of this.#marks.splice(0)) this.#returnMark(mark.name);
      if (asked) model?.cleared(now);
    }
  }
}
