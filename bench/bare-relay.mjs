/**
 * The yardstick beside which the server's cost is told: the least that any program on these two sockets has to do. It
 * parses each message, decodes its base64, encodes it again and passes one message on for each: no transcoding, no
 * filter, no pacing, no marks, no state. The sound that it passes is therefore in the wrong format; the load knows.
 * Same doors as the server, so that the same load drives it. `PORT` and `GOOGLE_GEMINI_BASE_URL` as for the server.
 */
import { createServer } from 'node:http';
import { WebSocket, WebSocketServer } from 'ws';

const port = Number(process.env.PORT);
const modelUrl = `${process.env.GOOGLE_GEMINI_BASE_URL.replace(/^http/, 'ws')}/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=bench`;
const SETUP = JSON.stringify({ setup: { model: 'models/bench', outputAudioTranscription: {} } });

function relay(carrier) {
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
      const payload = Buffer.from(part.inlineData.data, 'base64').toString('base64');
      carrier.send(JSON.stringify({ event: 'media', streamSid, media: { payload } }));
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
server.on('upgrade', (request, socket, head) => sockets.handleUpgrade(request, socket, head, relay));
server.listen(port, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
