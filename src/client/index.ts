/**
 * The package's face for clients, `earshot/client`: what turns the server's frames into a page, and two ways to get them.
 * Everything below this folder runs in browsers and in Node, and needs nothing else.
 */
export { connectEvents } from './connect-events.js';
export { connectLive } from './connect-live.js';
export { readFrame, readFrameText } from './frame.js';
export { storedMessages } from './page.js';
export { initialState, reduce, restart } from './reducer.js';
export type { EventsOptions } from './connect-events.js';
export type { LiveConnection, LiveOptions, LiveSocket, LiveSocketClass } from './connect-live.js';
export type {
  Connection,
  ConnectionEnd,
  ConnectionOptions,
  ConnectionStatus,
  EndReason,
} from './connection.js';
export type {
  DeltaFrame,
  DoneFrame,
  ErrorFrame,
  FlushFrame,
  Frame,
  FrameReading,
  FrameType,
  HeartbeatFrame,
  HistoryFrame,
  HistoryMessage,
  ReadyFrame,
  Role,
  ToolFrame,
  ToolState,
} from './frame.js';
export type { MessageStatus, Page, ShownFailure, ShownMessage, ShownTool } from './page.js';
export type { ClientClock, ClientTimer, Chance } from './platform.js';
export type { ClientState, FrameCounts } from './reducer.js';
