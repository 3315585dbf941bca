/** New tasks: what a handler submits, and the options of a kind. */

import { checkInteger, checkMs, checkName, KEY_BYTES, LIMIT, TAGS } from "./internal/bounds.js";
import type { InputOf, MaybeSchema, Schema } from "./schema.js";

/** A retry policy. All fields are optional. */
export interface Retry {
  /** The number of attempts, with the first one; at least 1, by default 5. */
  attempts?: number;
  /** The growth of the delay; by default `jitter`, a random time up to that of `exponential`. */
  backoff?: "constant" | "linear" | "exponential" | "jitter";
  /** The first delay; by default 1 000 ms. */
  initialMs?: number;
  /** The factor of `exponential` and `jitter`; at least 1, by default 2. */
  factor?: number;
  /** The increment of `linear`; by default `initialMs`. */
  incrementMs?: number;
  /** The longest delay; by default 600 000 ms. */
  maximumMs?: number;
}

/**
 * Options of a kind. Each applies to tasks that were submitted without their own, except `limit`.
 */
export interface KindOptions {
  /** The largest number of handlers of this kind that run at once in this worker. */
  limit?: number;
  /** A retry policy, or the number of attempts. */
  retry?: number | Retry;
  /** The longest time of an attempt, in milliseconds. */
  timeoutMs?: number;
  /** The longest time without a heartbeat or progress of the handler, in milliseconds. */
  heartbeatMs?: number;
}

/** A kind of tasks, with the schemas of its payload and result. */
export interface Kind<I extends MaybeSchema = MaybeSchema, O extends MaybeSchema = MaybeSchema> {
  readonly kind: string;
  readonly input: I;
  readonly output: O;
}

/** A kind by its name or with its types. */
export type AnyKind = string | Kind;

/** The type of the payload that a submit of a kind takes. */
export type PayloadOf<K> = K extends Kind<infer I, MaybeSchema> ? InputOf<I> : unknown;

/**
 * Returns a kind with the schemas of its payload and result. Submitters and handlers share it, so
 * that the compiler checks payloads.
 *
 * Throws RangeError for a name of more than 128 bytes.
 */
export function defineKind<I extends MaybeSchema = undefined, O extends MaybeSchema = undefined>(
  kind: string,
  schemas: { input?: I; output?: O } = {},
): Kind<I, O> {
  checkName("kind", kind);
  return { kind, input: schemas.input as I, output: schemas.output as O };
}

/** Options of a new task. Times are in milliseconds. */
export interface SubmitOptions {
  /** By default `default`. */
  queue?: string;
  /** The priority, from 0 to 255; higher is sooner; by default 128. */
  priority?: number;
  /** A text of up to 512 bytes; at most one active task of the kind has it. */
  key?: string;
  /** The time for which the key stays taken after the end. */
  keepKeyMs?: number;
  /** The effect of a submit with a key that is taken; by default `skip`. */
  onDuplicate?: "skip" | "supersede" | "reject" | "requeue";
  /** The time until the task may start. */
  delayMs?: number;
  /** The task expires if it has not started so long after the submit. */
  ttlMs?: number;
  /** The longest time of an attempt; by default that of the kind, or none. */
  timeoutMs?: number;
  /** The longest time without a heartbeat or progress; by default that of the kind, or none. */
  heartbeatMs?: number;
  /** A retry policy, or the number of attempts; by default that of the kind, or the engine's. */
  retry?: number | Retry;
  /** A name of up to 128 bytes, by which limits and fair shares apply. */
  group?: string;
  /**
   * A name of up to 128 bytes; tasks with the same one prefer the worker that ran the last of them.
   */
  affinity?: string;
  /** Up to 32 texts by name. */
  tags?: Readonly<Record<string, string>>;
  /** Texts for the handler; they need a gateway with the feature `headers`. */
  headers?: Readonly<Record<string, string>>;
}

/** A task to submit. `payload` is a Uint8Array, or anything with a JSON form. */
export interface NewTask<K extends AnyKind = AnyKind> extends SubmitOptions {
  kind: K;
  payload?: PayloadOf<K>;
}

/** The result of a submit. */
export interface Submitted {
  /** The id of the new task, or of the existing one. */
  readonly task: string;
  readonly result: "inserted" | "duplicate" | "priority_raised" | "requeued" | "superseded" | "rejected";
}

type Fields = Record<string, unknown>;

/** Returns the name of a kind. */
export function kindName(kind: AnyKind): string {
  return typeof kind === "string" ? kind : kind.kind;
}

/** Returns the schema of the payload of a kind. */
export function inputOf(kind: AnyKind): Schema<unknown, unknown> | undefined {
  return typeof kind === "string" ? undefined : kind.input;
}

/** Returns a retry policy as the protocol writes it. */
export function retryFields(retry: number | Retry): Fields {
  const policy = typeof retry === "number" ? { attempts: retry } : retry;
  const { backoff = "jitter", initialMs = 1_000, factor = 2, maximumMs = 600_000 } = policy;
  const fields: Fields = { attempts: checkInteger("attempts", policy.attempts ?? 5, 1), backoff };
  fields.initial_ms = checkMs("initialMs", initialMs, 0);
  if (!["constant", "linear", "exponential", "jitter"].includes(backoff)) {
    throw new RangeError(`backoff is \`${backoff}\`; use constant, linear, exponential or jitter`);
  }
  if (backoff === "exponential" || backoff === "jitter") {
    if (!(factor >= 1 && Number.isFinite(factor)))
      throw new RangeError(`factor is ${factor}; it must be at least 1`);
    fields.factor = factor;
  }
  if (backoff === "linear") fields.increment_ms = checkMs("incrementMs", policy.incrementMs ?? initialMs, 0);
  if (backoff !== "constant") fields.maximum_ms = checkMs("maximumMs", maximumMs, 0);
  return fields;
}

/** Returns the options of a kind as `hello` writes them. */
export function kindFields(options: KindOptions): Fields {
  const fields: Fields = {};
  if (options.limit !== undefined) fields.limit = checkInteger("limit", options.limit, 1, LIMIT);
  if (options.retry !== undefined) fields.retry = retryFields(options.retry);
  if (options.timeoutMs !== undefined) fields.timeout_ms = checkMs("timeoutMs", options.timeoutMs, 1);
  if (options.heartbeatMs !== undefined) fields.heartbeat_ms = checkMs("heartbeatMs", options.heartbeatMs, 1);
  return fields;
}

/**
 * Returns a new task as the protocol writes it, without its payload. Throws RangeError beyond a
 * bound.
 */
export function taskFields(task: NewTask): Fields {
  const fields: Fields = { kind: checkName("kind", kindName(task.kind)) };
  if (task.queue !== undefined) fields.queue = checkName("queue", task.queue);
  if (task.priority !== undefined) fields.priority = checkInteger("priority", task.priority, 0, 255);
  keyFields(task, fields);
  if (task.group !== undefined) fields.group = checkName("group", task.group);
  if (task.affinity !== undefined) fields.affinity = checkName("affinity", task.affinity);
  if (task.delayMs !== undefined) fields.delay_ms = checkMs("delayMs", task.delayMs, 0);
  if (task.ttlMs !== undefined) fields.ttl_ms = checkMs("ttlMs", task.ttlMs, 1);
  if (task.timeoutMs !== undefined) fields.timeout_ms = checkMs("timeoutMs", task.timeoutMs, 1);
  if (task.heartbeatMs !== undefined) fields.heartbeat_ms = checkMs("heartbeatMs", task.heartbeatMs, 1);
  if (task.retry !== undefined) fields.retry = retryFields(task.retry);
  if (task.tags !== undefined) {
    checkInteger("the number of tags", Object.keys(task.tags).length, 0, TAGS);
    fields.tags = { ...task.tags };
  }
  if (task.headers !== undefined) fields.headers = { ...task.headers };
  return fields;
}

function keyFields(task: NewTask, fields: Fields): void {
  if (task.key === undefined) {
    if (task.keepKeyMs !== undefined || task.onDuplicate !== undefined) {
      throw new RangeError("keepKeyMs and onDuplicate need a `key`");
    }
    return;
  }
  fields.key = checkName("key", task.key, KEY_BYTES);
  if (task.onDuplicate !== undefined) fields.on_duplicate = task.onDuplicate;
  if (task.keepKeyMs !== undefined) fields.keep_key_ms = checkMs("keepKeyMs", task.keepKeyMs, 0);
}
