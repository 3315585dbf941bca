/** Ends of attempts: from what a handler returns or throws to an entry of an `end` message. */

import type { StopReason } from "../errors.js";
import { Cancelled, Fail, PayloadError, RetryLater } from "../errors.js";
import { checkMs, cut } from "./bounds.js";
import { HEADER_BYTES, MESSAGE_BYTES, PAYLOADS } from "./frames.js";
import type { TaskMessage } from "./messages.js";
import { encodePayload } from "./payload.js";
import type { EncodedTask } from "./requests.js";

const TEXT_BYTES = 8_192;
const CLASS_BYTES = 128;
const DETAILS_BYTES = 4_096;
const STACK_CHARACTERS = 2_000;

/**
 * The part of a header that is kept free beside spawned tasks, for progress and the frame of the
 * list.
 */
const SPAWN_MARGIN = 4_096;

type Fields = Record<string, unknown>;

/** A field that gets the index of a payload when the message is built. */
export interface Reference {
  target: Fields;
  name: string;
  payload: Uint8Array;
}

/** One entry of an `end` message, with the payloads to which its fields point. */
export interface End {
  entry: Fields;
  references: Reference[];
}

/** Another end of an attempt than a result. A context makes it, and a handler returns it. */
export class Ending {
  /** Keeps the type apart from all others: the declared class has no other member. */
  protected readonly isEnding = true;

  /** @internal */
  constructor(
    /** @internal */
    readonly outcome: string,
    /** @internal */
    readonly fields: Fields,
    /** @internal */
    readonly checkpoint: Uint8Array | null = null,
  ) {}
}

/** Returns the end that waits for external completion. */
export function laterEnding(withinMs: number | undefined): Ending {
  return new Ending("later", withinMs === undefined ? {} : { within_ms: checkMs("withinMs", withinMs, 1) });
}

/** Returns the end that waits for children. */
export function childrenEnding(checkpoint: unknown, failFast: boolean): Ending {
  const payload = checkpoint === undefined ? null : encodePayload(checkpoint);
  return new Ending("children", { on_failure: failFast ? "fail" : "ignore" }, payload);
}

function entryOf(task: Pick<TaskMessage, "task" | "fence">, outcome: string): Fields {
  return { task: task.task, fence: task.fence, outcome };
}

/** Returns the end of a task that was not started, or is given up. */
export function released(task: TaskMessage, why: "unknown_kind" | "draining" | "given_up"): End {
  return { entry: { ...entryOf(task, "release"), why }, references: [] };
}

/**
 * Returns the end of an attempt with a result.
 *
 * A result without a JSON form, or one that is too large, becomes a failure without a retry.
 */
export function completed(task: TaskMessage, value: unknown, maxPayload: number): End {
  let payload: Uint8Array;
  try {
    payload = encodePayload(value);
  } catch (error) {
    return failed(task, error, false);
  }
  if (payload.length > maxPayload) return tooLarge(task, "result", payload.length, maxPayload);
  const entry = entryOf(task, "ok");
  return { entry, references: [{ target: entry, name: "payload", payload }] };
}

function tooLarge(task: TaskMessage, name: string, size: number, bound: number): End {
  const message =
    `the ${name} of task ${task.task} has ${size} bytes, more than ${bound};` +
    " store the data elsewhere and return a reference";
  return {
    entry: { ...entryOf(task, "fail"), class: "PayloadTooLarge", message, retry: false },
    references: [],
  };
}

/** Returns the end of a turn with its decisions. */
export function turnEnded(task: TaskMessage, reply: Uint8Array, maxPayload: number): End {
  if (reply.length > maxPayload) return tooLarge(task, "decisions of a turn", reply.length, maxPayload);
  const entry = entryOf(task, "turn");
  return { entry, references: [{ target: entry, name: "payload", payload: reply }] };
}

/** Returns the end that a handler chose instead of a result. */
export function endedOtherwise(task: TaskMessage, ending: Ending, maxPayload: number): End {
  const end: End = { entry: { ...entryOf(task, ending.outcome), ...ending.fields }, references: [] };
  const checkpoint = ending.checkpoint;
  if (checkpoint !== null) {
    if (checkpoint.length > maxPayload) return tooLarge(task, "checkpoint", checkpoint.length, maxPayload);
    end.references.push({ target: end.entry, name: "checkpoint", payload: checkpoint });
  }
  return end;
}

/** Returns the end of an attempt that threw an error. */
export function failed(task: TaskMessage, error: unknown, retry?: boolean): End {
  const entry = entryOf(task, "fail");
  entry.class = cut(className(error), CLASS_BYTES);
  entry.message = cut(messageOf(error) || className(error), TEXT_BYTES);
  if (error instanceof Fail || error instanceof PayloadError) entry.retry = false;
  if (error instanceof RetryLater) {
    entry.retry_after_ms = error.afterMs;
    if (!error.counts) entry.counts = false;
  }
  if (retry !== undefined) entry.retry = retry;
  const details = detailsOf(error);
  if (details !== undefined) entry.details = details;
  return { entry, references: [] };
}

/** Returns the name of an error's class, or of the type of a thrown value. */
export function className(error: unknown): string {
  return error instanceof Error ? error.name || error.constructor.name : typeof error;
}

/** Returns the message of an error, or a thrown value as text. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return String(error.message);
  try {
    return typeof error === "object" ? JSON.stringify(error) : String(error);
  } catch {
    return "a value without a text was thrown";
  }
}

function detailsOf(error: unknown): unknown {
  if (error instanceof Fail || error instanceof RetryLater) return boundedDetails(error.details);
  if (error instanceof PayloadError || !(error instanceof Error) || error.stack === undefined)
    return undefined;
  return boundedDetails({ stack: error.stack.slice(0, STACK_CHARACTERS) });
}

function boundedDetails(details: unknown): unknown {
  if (details === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(details);
  } catch {
    text = undefined;
  }
  if (text === undefined) return { omitted: "the details have no JSON form" };
  const size = Buffer.byteLength(text);
  return size <= DETAILS_BYTES
    ? details
    : { omitted: `the details had ${size} bytes, more than ${DETAILS_BYTES}` };
}

/**
 * Returns the end of an attempt that threw an error after it was asked to stop.
 *
 * null means that no end is sent, because the lease has passed on.
 */
export function stopped(task: TaskMessage, why: StopReason, error: unknown): End | null {
  switch (why) {
    case "lost":
      return null;
    case "cancelled":
      return { entry: entryOf(task, "cancelled"), references: [] };
    case "timeout":
      return failed(task, isStop(error) ? timeoutError() : error);
    case "stopping":
      return released(task, "draining");
    case "preempted":
      return released(task, "given_up");
  }
}

function timeoutError(): Error {
  const error = new Error("the attempt exceeded its time limit");
  error.name = "TimeoutError";
  return error;
}

/** Returns whether an error means that the handler followed the request to stop. */
export function isStop(error: unknown): boolean {
  return error instanceof Cancelled || (error instanceof Error && error.name === "AbortError");
}

/** Returns the end with the children that it submits, or a failure if they do not fit. */
export function withSpawned(
  end: End,
  task: TaskMessage,
  spawned: readonly EncodedTask[],
  maxPayload: number,
): End {
  if (!["ok", "later", "children", "move"].includes(end.entry.outcome as string)) return end;
  let total = 0;
  const list = spawned.map(({ fields, payload }) => {
    const entry = { ...fields };
    total += payload.length;
    // The index is written when the message is built; until then its longest form counts.
    if (payload.length > 0) {
      entry.payload = PAYLOADS;
      end.references.push({ target: entry, name: "payload", payload });
    }
    return entry;
  });
  const largest = Math.max(...spawned.map(({ payload }) => payload.length));
  if (largest > maxPayload || total > MESSAGE_BYTES / 2) {
    return tooLarge(task, "payload of the spawned tasks", Math.max(largest, total), maxPayload);
  }
  end.entry.spawn = list;
  const size = Buffer.byteLength(JSON.stringify(end.entry));
  if (size <= HEADER_BYTES - SPAWN_MARGIN && end.references.length <= PAYLOADS) return end;
  const message =
    `${spawned.length} spawned tasks need ${size} bytes of a header, more than ${HEADER_BYTES - SPAWN_MARGIN};` +
    " submit them with `submit`, with keys";
  return {
    entry: { ...entryOf(task, "fail"), class: "SpawnTooLarge", message, retry: false },
    references: [],
  };
}

/**
 * Returns the failure that is sent after the gateway refused an end, and the release after a second
 * refusal.
 */
export function refused(task: string, fence: string, why: string, again: boolean): End {
  const of = { task, fence };
  if (again) return { entry: { ...entryOf(of, "release"), why: "given_up" }, references: [] };
  const message = cut(`the gateway refused the end of this attempt: ${why}`, TEXT_BYTES);
  return { entry: { ...entryOf(of, "fail"), class: "Refused", message, retry: false }, references: [] };
}
