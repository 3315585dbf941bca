/** Errors that handlers throw and that Onward throws. */

/** Reasons for which an attempt is asked to stop. `stopping` means that the worker itself stops. */
export type StopReason = "cancelled" | "lost" | "preempted" | "timeout" | "stopping";

/** The base of all errors of this package. */
export class OnwardError extends Error {
  override name = "OnwardError";
}

/**
 * Ends the task as failed: no further attempt is made.
 *
 * `details` is any JSON value of at most 4 096 bytes, for programs that read the failure.
 */
export class Fail extends OnwardError {
  override name = "Fail";
  readonly details: unknown;

  constructor(message = "", options: { details?: unknown; cause?: unknown } = {}) {
    super(message, options);
    this.details = options.details;
  }
}

/** Options of RetryLater. */
export interface RetryLaterOptions {
  /** Milliseconds until the next attempt, instead of the delay of the retry policy. */
  afterMs: number;
  /**
   * False to leave the attempt uncounted; by default true. Use false if something that the task needs is
   * busy.
   */
  counts?: boolean;
  /** Any JSON value of at most 4 096 bytes. */
  details?: unknown;
  cause?: unknown;
}

/** Ends the attempt; the task is tried again after `afterMs`. */
export class RetryLater extends OnwardError {
  override name = "RetryLater";
  readonly afterMs: number;
  readonly counts: boolean;
  readonly details: unknown;

  constructor(message: string, options: RetryLaterOptions) {
    super(message, options);
    if (!(options.afterMs >= 0)) {
      throw new RangeError(`afterMs is ${options.afterMs}; it must be at least 0`);
    }
    this.afterMs = Math.round(options.afterMs);
    this.counts = options.counts ?? true;
    this.details = options.details;
  }
}

/** The attempt should stop. Let it pass through the handler after its cleanup. */
export class Cancelled extends OnwardError {
  override name = "Cancelled";

  constructor(readonly why: StopReason) {
    super(`the attempt was asked to stop: ${why}`);
  }
}

/**
 * The gateway or the store rejects a request. `code` is the protocol's, `remedy` says what to do.
 */
export class Refused extends OnwardError {
  override name = "Refused";

  constructor(
    readonly code: string,
    readonly text: string,
    readonly remedy = "",
  ) {
    super(`${code}: ${text}${remedy === "" ? "" : `; ${remedy}`}`);
  }
}

/**
 * The connection was lost before the reply, so that it is unknown whether the request took effect.
 *
 * A submit whose tasks all have keys is sent again by itself and does not throw this.
 */
export class Unavailable extends OnwardError {
  override name = "Unavailable";
}

/** A payload or result that does not have the type that its schema states, or has no JSON form. */
export class PayloadError extends OnwardError {
  override name = "PayloadError";
}

/** No signal came within the time of a wait in an orchestration. */
export class SignalTimeout extends OnwardError {
  override name = "SignalTimeout";

  constructor(
    readonly signal: string,
    readonly timeoutMs: number,
  ) {
    super(`no signal \`${signal}\` came within ${timeoutMs} ms`);
  }
}

/**
 * The code of an orchestration does what a replay would do again: it starts a timer, connects, reads
 * a file.
 *
 * The orchestration becomes a dead letter and its messages are kept: correct the code, then retry it.
 */
export class NotDeterministic extends OnwardError {
  override name = "NotDeterministic";
}

/**
 * The code of an orchestration differs from its history, at `position`.
 *
 * `expected` is what the history has there, `found` what the code does; both are texts, or null.
 */
export class Nondeterminism extends OnwardError {
  override name = "Nondeterminism";

  constructor(
    readonly position: number,
    readonly expected: string | null,
    readonly found: string | null,
    cause: string,
  ) {
    const has = expected === null ? "the history ends" : `the history has ${expected}`;
    const does = found === null ? "the code has nothing of the kind" : `the code has ${found}`;
    super(
      `the code does not match its history: at event ${position} ${has}, and ${does}; ${cause};` +
        " bring back the code that began it, then retry the orchestration",
    );
  }
}
