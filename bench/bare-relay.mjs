/**
 * The yardstick beside which the server's cost is told: the least that any program on these two sockets has to do. It
 * parses each message, decodes its base64, encodes it again and passes one message on for each: no transcoding, no
 * filter, no pacing, no marks, no state. The sound that it passes is therefore in the wrong format; the load knows.
 * Same doors as the server, so that the same load drives it. `PORT` and `GOOGLE_GEMINI_BASE_URL` as for the server.
 *
 * With `RELAY_ALIKE=1` it speaks to the carrier about as often as the server must: the model's sound goes on in many messages,
 * two a write, with marks, which come back and are parsed. It still does not pace them.
 */
import { createServer } from 'node:http';
import { WebSocket, WebSocketServer } from 'ws';

const port = Number(process.env.PORT);
const modelUrl = `${process.env.GOOGLE_GEMINI_BASE_URL.replace(/^http/, 'ws')}/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=bench`;
const SETUP = JSON.stringify({ setup: { model: 'models/bench', outputAudioTranscription: {} } });

const ALIKE = process.env.RELAY_ALIKE === '1';
/** PCM16 at 24 kHz. The server's messages are of 40 ms; but the relay also sends what an interruption then throws away, a
 * quarter as much again, so that longer ones come to the same number a second. */
const MESSAGE_BYTES = 54 * 48;
const MESSAGES_A_WRITE = 2;
const MESSAGES_A_MARK = 4;

/** Sends sound as it came, or cut up. */
function speaker(carrier, socket) {
  let sent = 0;
  const media = (streamSid, bytes) => {
    carrier.send(JSON.stringify({ event: 'media', streamSid, media: { payload: bytes.toString('base64') } }));
  };
  if (!ALIKE) return media;
  return (streamSid, bytes) => {
    for (let at = 0; at < bytes.length; at += MESSAGE_BYTES) {
      if (sent % MESSAGES_A_WRITE === 0) socket.cork();
      media(streamSid, bytes.subarray(at, at + MESSAGE_BYTES));
      sent += 1;
      if (sent % MESSAGES_A_MARK === 0) {
        carrier.send(JSON.stringify({ event: 'mark', streamSid, mark: { name: `m${sent}` } }));
      }
      if (sent % MESSAGES_A_WRITE === 0 || at + MESSAGE_BYTES >= bytes.length) socket.uncork();
    }
    sent += sent % MESSAGES_A_WRITE;
  };
}

function relay(carrier, socket) {
  const speak = speaker(carrier, socket);
  const model = new WebSocket(modelUrl, { perMessageDeflate: false });
  let streamSid = '';
  let ready = false;
  model.on('open', () => model.send(SETUP));
  model.on('message', (bytes) => {
    const message = JSON.parse(bytes);
    if (message.setupComplete !== undefined) ready = true;
    const content = message.serverContent;
    if (content === undefined) return;
    if (content.interrupted === true) carrier.send(JSON.stringify({ event: 'clear', streamSid }));
    for (const part of content.modelTurn?.parts ?? []) {
      speak(streamSid, Buffer.from(part.inlineData.data, 'base64'));
    }
  });
  carrier.on('message', (bytes) => {
    const message = JSON.parse(bytes);
    if (message.event === 'start') ({ streamSid } = message);
    if (message.event !== 'media' || !ready) return;
    const data = Buffer.from(message.media.payload, 'base64').toString('base64');
    model.send(JSON.stringify({ realtimeInput: { audio: { mimeType: 'audio/x-mulaw;rate=8000', data } } }));
  });
  carrier.on('close', () => model.close());
  model.on('close', () => carrier.close());
  carrier.on('error', () => carrier.terminate());
  model.on('error', () => model.terminate());
}

const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
const server = createServer((request, response) => {
  if (request.url === '/healthz') {
    response.end('ok');
    return;
  }
  request.resume();
  response.setHeader('content-type', 'text/xml');
  response.end(
    `<Response><Connect><Stream url="wss://127.0.0.1:${port}/twilio/media"><Parameter name="token" value="none"/>` +
      '</Stream></Connect></Response>',
  );
});
server.on('upgrade', (request, socket, head) =>
  sockets.handleUpgrade(request, socket, head, (carrier) => relay(carrier, socket)),
);
server.listen(port, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
