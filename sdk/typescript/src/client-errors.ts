/** Errors that a client throws. */

import { OnwardError, Refused } from "./errors.js";
import type { TaskState } from "./results.js";

/** The facts of a problem besides its code, text and remedy. */
export interface ProblemFields {
  /** The status of the response. */
  status: number;
  /** The part of the request at fault. */
  field?: string | undefined;
  /** The number of the request in the log of the server. */
  requestId?: string | undefined;
  /** The time after which the server asks for another attempt. */
  retryAfterMs?: number | undefined;
}

/**
 * The server refused a request, or failed in it. `code` is stable and for programs; `text` and
 * `remedy` are for people.
 */
export class Problem extends Refused {
  override name = "Problem";
  readonly status: number;
  readonly field: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: string, text: string, remedy: string, fields: ProblemFields) {
    super(code, text, remedy);
    this.status = fields.status;
    this.field = fields.field;
    this.requestId = fields.requestId;
    this.retryAfterMs = fields.retryAfterMs;
  }
}

/** The task, run, template or path does not exist (404). */
export class NotFound extends Problem {
  override name = "NotFound";
}

/** The state of the thing does not allow the request (409, 412). */
export class Conflict extends Problem {
  override name = "Conflict";
}

/** The request breaks a rule (400, 413, 415, 422). */
export class Invalid extends Problem {
  override name = "Invalid";
}

/** The key is missing, not valid, or may not do this (401, 403). */
export class Denied extends Problem {
  override name = "Denied";
}

/** The server stops, or has too much to do, and did not recover in time (429, 503). */
export class Overloaded extends Problem {
  override name = "Overloaded";
}

/**
 * A task ended without being completed. A client sets `task`, the id; an orchestration sets `kind`.
 *
 * The state is `not_started` in an orchestration, if another task has the key.
 */
export class TaskFailed extends OnwardError {
  override name = "TaskFailed";

  constructor(
    readonly task: string | null,
    readonly state: TaskState | "not_started",
    /** The last error of the task. */
    readonly error: string | null,
    readonly kind: string | null = null,
  ) {
    const name = kind === null ? `task ${task}` : `the task \`${kind}\``;
    super(`${name} is ${state}${error === null ? "" : `: ${error}`}`);
  }
}

/** A task has not ended within the time. It goes on; wait for it again by its id, `task`. */
export class WaitTimeout extends OnwardError {
  override name = "WaitTimeout";

  constructor(
    readonly task: string,
    withinMs: number,
  ) {
    super(`task ${task} has not ended within ${withinMs} ms; wait for it again, or cancel it`);
  }
}
