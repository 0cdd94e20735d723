/**
 * Phone calls as the store knows them: one record for each, from its first media stream on. It says which server has the call, so that
 * another one can go on with it where that server is lost or hands it over.
 */

export interface NewCall {
  readonly callSid: string;
  readonly appName: string;
  readonly userId: string;
  readonly callDirection: 'inbound' | 'outbound';
  /** What the carrier attested of the caller when the call began: it says so only once. */
  readonly callerVerified: boolean;
  /** The server that has it: an id that a process gives itself, for as long as it lives. */
  readonly owner: string;
}

export interface CallRecord extends NewCall {
  readonly startedAtMs: number;
  /** Absent while it goes on, or its server has died. */
  readonly ended?: CallRecordEnd;
}

export interface CallRecordEnd {
  readonly atMs: number;
  readonly reason: string;
  /** The caller was left on the line: the carrier may still ask what follows. */
  readonly mayReturn: boolean;
}

/** Of each record only its owner says how it ended. */
export interface CallRecords {
  /** A call has its first stream on this server. One that has a record is this server's from now on, and keeps its beginning. */
  beginCall(call: NewCall): Promise<void>;
  findCallRecord(callSid: string): Promise<CallRecord | undefined>;
  /** `false`: there is no such record, it has ended, or it is another server's by now. */
  endCall(
    callSid: string,
    end: { readonly owner: string; readonly reason: string; readonly mayReturn: boolean },
  ): Promise<boolean>;
  /** Takes a call over, if it is still that of `from` and not over for good: of those who try at once one has `true`. */
  claimCall(callSid: string, owners: { readonly from: string; readonly to: string }): Promise<boolean>;
}
