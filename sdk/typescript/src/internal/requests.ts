/** Requests of a handler to the gateway, and the reading of their replies. */

import { Refused } from "../errors.js";
import type { TaskState } from "../results.js";
import { Child, TaskResult } from "../results.js";
import type { NewTask, Submitted } from "../tasks.js";
import { inputOf, kindName, taskFields } from "../tasks.js";
import { MESSAGE_BYTES } from "./frames.js";
import type { Reply, Texts } from "./messages.js";
import { entries, isObject, optionalText, payloadAt, text } from "./messages.js";
import { encodePayload, validateSync } from "./payload.js";

/** The longest wait of one `ask`, in milliseconds. */
const LONGEST_WAIT_MS = 60_000;

const EMPTY = Buffer.alloc(0);

/** A task to submit, checked and encoded. */
export interface EncodedTask {
  fields: Record<string, unknown>;
  payload: Uint8Array;
}

/** The part of a gateway's `welcome` that bounds new tasks, and the trace that they continue. */
export interface SubmitBounds {
  features: ReadonlySet<string>;
  maxPayload: number;
  trace: Texts;
}

/**
 * Returns a task with every field checked, also its payload against the schema of its kind.
 *
 * Throws RangeError beyond a bound, PayloadError for a payload that the schema rejects, Refused for
 * headers that the gateway does not keep.
 */
export function encodeTask(task: NewTask, bounds: SubmitBounds): EncodedTask {
  const fields = taskFields(task);
  const keepsHeaders = bounds.features.has("headers");
  if (task.headers !== undefined && !keepsHeaders) {
    throw new Refused(
      "unsupported",
      "the gateway has no feature `headers`",
      "submit without headers, or use tags",
    );
  }
  if (keepsHeaders && Object.keys(bounds.trace).length > 0) fields.trace = { ...bounds.trace };
  const schema = inputOf(task.kind);
  // The value itself is sent, and not what the schema makes of it: the handler validates it again.
  if (schema !== undefined) validateSync(task.payload, schema, `the payload of \`${kindName(task.kind)}\``);
  const payload = task.payload === undefined ? EMPTY : encodePayload(task.payload);
  if (payload.length > bounds.maxPayload) {
    throw new RangeError(
      `the payload of a task of kind \`${kindName(task.kind)}\` has ${payload.length} bytes; it may have` +
        ` ${bounds.maxPayload}: store the data elsewhere and submit a reference`,
    );
  }
  return { fields, payload };
}

/**
 * Returns the entries and payloads of a submit. Throws RangeError if the payloads are too large
 * together.
 */
export function submitParts(tasks: readonly EncodedTask[]): { list: object[]; payloads: Uint8Array[] } {
  const payloads: Uint8Array[] = [];
  let total = 0;
  const list = tasks.map(({ fields, payload }) => {
    if (payload.length === 0) return fields;
    total += payload.length;
    payloads.push(payload);
    return { ...fields, payload: payloads.length - 1 };
  });
  if (payloads.length > 1 && total > MESSAGE_BYTES) {
    throw new RangeError(
      `the payloads of a submit have ${total} bytes together, more than ${MESSAGE_BYTES}; submit fewer tasks at once`,
    );
  }
  return { list, payloads };
}

/** Returns the reply, or throws Refused if it is an error. */
function checkReply(reply: Reply): Reply {
  const error = reply.header.error;
  if (error == null) return reply;
  const fields = isObject(error) ? error : {};
  throw new Refused(
    text("reply", fields, "code", "invalid"),
    text("reply", fields, "text", ""),
    text("reply", fields, "remedy", ""),
  );
}

/** Returns the reply to a submit of so many tasks. */
export function readSubmitted(reply: Reply, count: number): Submitted[] {
  const found = entries("reply", checkReply(reply).header, "tasks", 1);
  if (found.length !== count) {
    throw new Refused("bad_field", `the gateway's reply has ${found.length} tasks instead of ${count}`);
  }
  return found.map((entry) => ({
    task: text("reply", entry, "task"),
    result: text("reply", entry, "result") as Submitted["result"],
  }));
}

/** Returns the fields of an `ask` for a result. */
export function resultFields(task: string, waitMs: number): Record<string, unknown> {
  if (!(waitMs >= 0 && waitMs <= LONGEST_WAIT_MS)) {
    throw new RangeError(`waitMs is ${waitMs}; it must be from 0 to ${LONGEST_WAIT_MS}`);
  }
  return { task, wait_ms: Math.round(waitMs) };
}

/** Returns the reply to an `ask` for a result. */
export function readResult(task: string, reply: Reply): TaskResult {
  const header = checkReply(reply).header;
  const state = text("reply", header, "state") as TaskState;
  const payload = payloadAt("reply", header, "payload", reply.payloads);
  return new TaskResult(task, state, payload, optionalText("reply", header, "error_text"));
}

/** A page of a reply; `after` asks for the next one, and is null at the end. */
export interface Page<T> {
  list: T[];
  after: string | null;
}

/** Returns a page of children. */
export function readChildren(reply: Reply): Page<Child> {
  const list = entries("reply", checkReply(reply).header, "children").map((entry) => {
    const payload = payloadAt("reply", entry, "payload", reply.payloads);
    const [task, kind] = [text("reply", entry, "task"), text("reply", entry, "kind")];
    const state = text("reply", entry, "state") as TaskState;
    return new Child(task, state, payload, optionalText("reply", entry, "error_text"), kind);
  });
  return { list, after: optionalText("reply", reply.header, "next") };
}

/** Returns a page of items. */
export function readItems(reply: Reply): Page<Uint8Array> {
  const list = entries("reply", checkReply(reply).header, "items").map(
    (entry) => payloadAt("reply", entry, "payload", reply.payloads) ?? EMPTY,
  );
  return { list, after: optionalText("reply", reply.header, "next") };
}
