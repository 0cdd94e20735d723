/**
 * What each live model takes and refuses, by name: a setup field that a model does not know kills the call (1007).
 */

export interface ModelCapabilities {
  /** How the model behaves while a function call is open, when nothing is declared. */
  readonly toolBehavior: 'BLOCKING' | 'NON_BLOCKING';
  /** Whether caller audio may be sent while a blocking call is open. */
  readonly audioDuringBlockingTools: boolean;
  /** How text that wants an answer is sent. */
  readonly textInput: 'clientContent' | 'realtimeInput';
}
