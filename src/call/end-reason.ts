/**
 * Why a call ended: exactly one of these, and the label of `earshot_calls_total`.
 */
export const END_REASONS = [
  /** The caller hung up: `stop`, or the carrier's status says that the call is over. */
  'caller_hangup',
  /** The agent called `end_call` and its goodbye was heard. */
  'agent_ended',
  /** An operator ended it over HTTP. */
  'operator_hangup',
  'max_duration',
  /** The caller said nothing, neither after the reprompt. */
  'caller_idle',
  /** The model could not be reached when the call began. */
  'model_unreachable',
  /** The model's connection was lost in the call, or it never said a word. */
  'model_lost',
  /** The carrier's socket was lost and did not come back. */
  'carrier_lost',
  /** The call was announced but no media stream opened. */
  'no_stream',
  'server_draining',
  /** The call was refused with a busy message. */
  'busy',
  'internal_error',
] as const;

export type EndReason = (typeof END_REASONS)[number];

/** Ends that are a failure, and what clients are told of them: a fatal error, the last word of the run. */
export const FAILED_ENDS: Readonly<Partial<Record<EndReason, string>>> = {
  model_unreachable: 'The conversation is over: the model could not be reached.',
  model_lost: 'The conversation is over: the model was lost.',
  server_draining: 'The conversation is over: the server is stopping.',
  internal_error: 'The conversation is over: something went wrong on the server.',
};

/** Ends of ours that the caller must have been told about. */
export const EXPLAINED_ENDS: ReadonlySet<EndReason> = new Set([
  'model_unreachable',
  'model_lost',
  'carrier_lost',
  'server_draining',
  'internal_error',
]);
