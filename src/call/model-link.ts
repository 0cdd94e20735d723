/**
 * A call's connection to its model: connecting, connected, lost or closed by us. At most one at a time. Reconnecting
 * within a call is not built yet; this is where it will be.
 */
import type { SocketScope } from '../call-tap.js';
import { AppError, errorText } from '../errors.js';
import { faultFields } from '../foreign.js';
import type { CallSid } from '../ids.js';
import { ModelConnectError } from '../model/gemini-connect-error.js';
import type {
  ConnectLive,
  LiveClose,
  LiveConnection,
  LiveListener,
  LiveSetup,
} from '../model/live-connection.js';
import type { Log } from '../observe/log.js';

export interface ModelLinkOptions {
  readonly callSid: CallSid;
  readonly connectLive: ConnectLive;
  readonly log: Log;
  readonly onReady: (model: LiveConnection) => void;
  readonly onFailed: () => void;
  /** The connection is gone; `lost` says how, unless we closed it. */
  readonly onGone: (lost: LiveClose | undefined) => void;
}

export interface ModelConnect {
  /** May run an author's code: what it throws is a model that cannot be reached. */
  readonly makeSetup: () => LiveSetup;
  readonly listener: LiveListener;
  readonly openScope: () => SocketScope;
}

export class ModelLink {
  readonly #options: ModelLinkOptions;
  #connecting: AbortController | undefined;
  #model: LiveConnection | undefined;

  constructor(options: ModelLinkOptions) {
    this.#options = options;
  }

  get model(): LiveConnection | undefined {
    return this.#model;
  }

  /** A connection is open or on its way. */
  get isAlive(): boolean {
    return this.#model !== undefined || this.#connecting !== undefined;
  }

  connect({ makeSetup, listener, openScope }: ModelConnect): void {
    const { connectLive, log, callSid, onReady, onFailed } = this.#options;
    let setup: LiveSetup;
    try {
      setup = makeSetup();
    } catch (error) {
      log.error({ callSid, ...faultFields(error) }, 'the agent has no usable instruction: the call ends');
      return onFailed();
    }
    const connecting = new AbortController();
    this.#connecting = connecting;
    connectLive(setup, listener, connecting.signal, openScope()).then(
      (model) => {
        if (this.#connecting !== connecting) return model.close();
        this.#connecting = undefined;
        this.#model = model;
        log.info({ callSid, model: model.modelName }, 'model connected');
        onReady(model);
      },
      (error: unknown) => {
        if (this.#connecting !== connecting) return;
        this.#connecting = undefined;
        log.error({ callSid, ...whyOf(error) }, 'the model could not be reached');
        onFailed();
      },
    );
  }

  /** The connection's own word that it is closed. */
  onClose(close: LiveClose): void {
    if (this.#model === undefined) return;
    const { callSid, log, onGone } = this.#options;
    this.#model = undefined;
    if (!close.local) {
      log.warn(
        { callSid, code: close.code, pii: { reason: close.reason } },
        'the model’s connection was lost',
      );
    }
    onGone(close.local ? undefined : close);
  }

  /** The model will drop the connection soon. Moving to another one is not built yet: the drop is a lost model. */
  onGoAway(timeLeftMs: number): void {
    const { callSid, log } = this.#options;
    log.warn({ callSid, timeLeftMs }, 'the model announces the end of its connection');
  }

  /** Closes what is open and calls off what is on its way. Idempotent. */
  close(): void {
    this.#connecting?.abort();
    this.#connecting = undefined;
    const model = this.#model;
    this.#model = undefined;
    if (model === undefined) return;
    this.#options.onGone(undefined);
    model.close();
  }
}

/** What an operator needs to mend it: our code, and the provider's own words on the setup. */
function whyOf(error: unknown): object {
  if (!(error instanceof AppError)) return { cause: errorText(error) };
  const reason = error instanceof ModelConnectError ? error.providerReason : '';
  return { errorCode: error.code, cause: error.message, ...(reason === '' ? {} : { reason }) };
}
