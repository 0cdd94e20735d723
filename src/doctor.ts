/**
 * `npm run doctor`: checks what a real number needs, in the order in which a call needs it, and says what to mend.
 * Takes the environment as the server does; reads and connects only, changes nothing. Exit 0 when all is well, 1 when
 * something is to mend, 78 on a bad variable.
 */
import { accessSync, constants, mkdirSync } from 'node:fs';
import { config as loadDotenv } from 'dotenv';
import { systemClock } from './clock.js';
import { type Config, readConfig } from './config.js';
import { type Finding, checkPublicDoors } from './doctor-doors.js';
import { ConfigError, errorText } from './errors.js';
import type { LiveListener } from './model/live-connection.js';
import { silentLog } from './observe/log.js';
import { openModel, twilioRest } from './server.js';
import { TwilioAccount } from './telephony/twilio-account.js';

const ignore = (): void => {};
const deafListener: LiveListener = {
  onInterrupted: ignore,
  onAudio: ignore,
  onInputTranscription: ignore,
  onOutputTranscription: ignore,
  onGenerationComplete: ignore,
  onTurnComplete: ignore,
  onToolCall: ignore,
  onToolCallCancellation: ignore,
  onGoAway: ignore,
  onSessionResumptionUpdate: ignore,
  onUsageMetadata: ignore,
  onClose: ignore,
};

async function checkModel(config: Config): Promise<Finding[]> {
  const about = 'model';
  if (config.MODEL === 'rehearsal') {
    return [
      { about, ok: true, text: 'MODEL is the rehearsal stand-in: it takes turns but understands no speech' },
    ];
  }
  try {
    const model = await openModel(config, { clock: systemClock, log: silentLog });
    const setup = {
      instruction: 'Say nothing.',
      voice: undefined,
      languageCode: undefined,
      functionDeclarations: [],
    };
    const connection = await model.connectLive(setup, deafListener, new AbortController().signal);
    connection.close();
    await model.close();
    return [{ about, ok: true, text: `${config.GEMINI_MODEL} accepted a connection` }];
  } catch (error) {
    const mend = 'check the key, GEMINI_MODEL and that this machine reaches the model’s host';
    return [{ about, ok: false, text: `${config.GEMINI_MODEL}: ${errorText(error)}`, mend }];
  }
}

async function checkAccount(account: TwilioAccount): Promise<Finding[]> {
  const about = 'Twilio account';
  const answer = await account.fetchAccount();
  switch (answer.kind) {
    case 'found':
      return [
        {
          about,
          ok: answer.status === 'active',
          text: `is ${answer.status} (${answer.type})`,
          mend: 'activate it',
        },
      ];
    case 'noCredentials':
      return [
        {
          about,
          ok: false,
          text: 'no REST credentials: goodbyes end the line only through the TwiML behind the stream',
          mend: 'set TWILIO_ACCOUNT_SID with TWILIO_AUTH_TOKEN, or with TWILIO_API_KEY and TWILIO_API_SECRET',
        },
      ];
    case 'failed':
      return [
        {
          about,
          ok: false,
          text: answer.failure.cause,
          mend: 'check TWILIO_ACCOUNT_SID and its token or key',
        },
      ];
  }
}

async function checkNumber(account: TwilioAccount, config: Config): Promise<Finding[]> {
  const about = 'number';
  const { TWILIO_NUMBER: number, PUBLIC_URL: publicUrl } = config;
  if (number === undefined) {
    return [{ about, ok: true, text: 'TWILIO_NUMBER is unset, so that its settings were not looked at' }];
  }
  const answer = await account.findNumber(number);
  if (answer.kind !== 'found') {
    const text = answer.kind === 'failed' ? answer.failure.cause : 'the account does not own TWILIO_NUMBER';
    return [{ about, ok: false, text, mend: 'check TWILIO_NUMBER and the account' }];
  }
  const { settings } = answer;
  const voice = `${publicUrl ?? 'PUBLIC_URL'}/twilio/voice`;
  const status = `${publicUrl ?? 'PUBLIC_URL'}/twilio/status`;
  const rightVoice = settings.voiceUrl === voice || settings.voiceUrl?.startsWith(`${voice}/`) === true;
  return [
    { about: 'voice URL', ok: rightVoice, text: settings.voiceUrl ?? 'unset', mend: `set it to ${voice}` },
    {
      about: 'voice method',
      ok: settings.voiceMethod === 'POST',
      text: settings.voiceMethod ?? 'unset',
      mend: 'set it to POST',
    },
    {
      about: 'fallback URL',
      ok: settings.voiceFallbackUrl !== undefined,
      text: settings.voiceFallbackUrl ?? 'unset',
      mend: 'set one on other infrastructure (a TwiML Bin that says sorry), for the day this server does not answer',
    },
    {
      about: 'status callback',
      ok: settings.statusCallback === status,
      text: settings.statusCallback ?? 'unset',
      mend: `set it to ${status}`,
    },
  ];
}

function checkStore(config: Config): Finding[] {
  try {
    mkdirSync(config.DATA_DIR, { recursive: true, mode: 0o700 });
    accessSync(config.DATA_DIR, constants.W_OK);
    return [
      {
        about: 'store',
        ok: true,
        text: `DATA_DIR ${config.DATA_DIR} is writable (calls are kept in memory only)`,
      },
    ];
  } catch (error) {
    return [{ about: 'store', ok: false, text: errorText(error), mend: 'make DATA_DIR writable' }];
  }
}

function print(finding: Finding): void {
  const mark = finding.ok ? 'ok  ' : 'MEND';
  const hint = finding.ok || finding.mend === undefined ? '' : `\n       ${finding.mend}`;
  process.stdout.write(`${mark} ${finding.about}: ${finding.text}${hint}\n`);
}

async function main(): Promise<number> {
  loadDotenv({ quiet: true });
  const config = readConfig(process.env);
  const account = new TwilioAccount(twilioRest(config));
  const checks = [
    () => checkAccount(account),
    () => checkNumber(account, config),
    () => checkPublicDoors(config),
    () => checkModel(config),
    async () => checkStore(config),
  ];
  let problems = 0;
  for (const check of checks) {
    for (const finding of await check()) {
      print(finding);
      if (!finding.ok) problems += 1;
    }
  }
  process.stdout.write(problems === 0 ? '\nAll is well.\n' : `\n${problems} to mend.\n`);
  return problems === 0 ? 0 : 1;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`doctor: ${errorText(error)}\n`);
    process.exit(error instanceof ConfigError ? 78 : 1);
  },
);
