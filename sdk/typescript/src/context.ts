/**
 * The context of an attempt: what a handler knows about its task, and what it can do beside its
 * work.
 */

import type { StopReason } from "./errors.js";
import { Cancelled, Refused } from "./errors.js";
import { checkName, cut } from "./internal/bounds.js";
import type { Ending } from "./internal/ends.js";
import { childrenEnding, laterEnding, Ending as NewEnding } from "./internal/ends.js";
import type { Header } from "./internal/frames.js";
import { PAYLOADS } from "./internal/frames.js";
import type { Reply, TaskMessage, Texts } from "./internal/messages.js";
import { decodeJson, encodePayload, readPayload, validateSync } from "./internal/payload.js";
import { now } from "./internal/port.js";
import type { EncodedTask, Page } from "./internal/requests.js";
import {
  encodeTask,
  readChildren,
  readItems,
  readResult,
  readSubmitted,
  resultFields,
  submitParts,
} from "./internal/requests.js";
import type { Logger } from "./logger.js";
import { withFields } from "./logger.js";
import type { Child, TaskResult } from "./results.js";
import { Step } from "./results.js";
import type { OutputOf, Schema } from "./schema.js";
import type { AnyKind, NewTask, PayloadOf, SubmitOptions, Submitted } from "./tasks.js";

const PROGRESS_MESSAGE_BYTES = 1_024;

/** Progress of a task. All fields are optional. */
export interface Progress {
  /** The finished part, from 0 to 1. */
  fraction?: number;
  /** A text of up to 1 024 bytes; a longer one is cut. */
  message?: string;
  /** Bytes done. */
  done?: number;
  /** Bytes in all. */
  total?: number;
}

/** The part of a worker that a context uses. The test harness has another one. */
export interface Host {
  readonly maxPayload: number;
  readonly features: ReadonlySet<string>;
  readonly state: unknown;
  readonly logger: Logger;
  /** Sends the context's heartbeat and progress soon. */
  touch(context: Context): void;
  /** Keeps a checkpoint; the promise ends when it is durable. */
  saveCheckpoint(context: Context, payload: Uint8Array): Promise<void>;
  /** Sends a request; the promise ends with its reply. */
  request(header: Header, payloads: Uint8Array[], resend: boolean): Promise<Reply>;
}

/** The context of one attempt. `State` is the type of the worker's `state`. */
export class Context<State = unknown> {
  /** Values that middleware hands to the handler; one map for each attempt. */
  readonly local = new Map<unknown, unknown>();
  /** @internal */
  readonly message: TaskMessage;
  /** @internal */
  progressFields: Progress | null = null;
  /** @internal */
  readonly spawned: EncodedTask[] = [];
  readonly #host: Host;
  readonly #deadline: number | null;
  #why: StopReason | null = null;
  #controller: AbortController | null = null;
  #saved: Uint8Array | null;

  /** @internal */
  constructor(message: TaskMessage, host: Host) {
    this.message = message;
    this.#host = host;
    this.#saved = message.checkpoint;
    this.#deadline = message.deadlineMs === null ? null : now() + message.deadlineMs;
  }

  // The task.

  /** The id of the task; never used twice, so it is a good idempotency key. */
  get taskId(): string {
    return this.message.task;
  }

  /** The kind of the task. */
  get kind(): string {
    return this.message.kind;
  }

  /** The queue of the task. */
  get queue(): string {
    return this.message.queue;
  }

  /** The priority of the task, from 0 to 255; higher is sooner. */
  get priority(): number {
    return this.message.priority;
  }

  /** The number of this attempt, from 1. */
  get attempt(): number {
    return this.message.attempt;
  }

  /** The payload in bytes. */
  get payload(): Uint8Array {
    return this.message.payload;
  }

  /** The token by which another program completes the task after `later`. */
  get token(): string {
    return `${this.message.task}.${this.message.fence}`;
  }

  /** The group of the task, or null. */
  get group(): string | null {
    return this.message.group;
  }

  /** The unique key of the task, or null. */
  get key(): string | null {
    return this.message.key;
  }

  /** The id of the task of which this one is a child, or null. */
  get parent(): string | null {
    return this.message.parent;
  }

  /** The tags of the task, by name. */
  get tags(): Texts {
    return this.message.tags;
  }

  /** The headers that the submitter gave the task. */
  get headers(): Texts {
    return this.message.headers;
  }

  /** `traceparent` and `tracestate` of the submitter, if it had them. */
  get trace(): Texts {
    return this.message.trace;
  }

  /** The time for which a schedule submitted the task, or null. */
  get scheduledAt(): Date | null {
    return this.message.scheduledAt === null ? null : new Date(this.message.scheduledAt);
  }

  /** Milliseconds until the attempt is stopped, or null without a time limit. */
  get remainingMs(): number | null {
    return this.#deadline === null ? null : Math.max(0, this.#deadline - now());
  }

  /**
   * The longest time between two heartbeats of the handler, in milliseconds, or null without one.
   */
  get heartbeatMs(): number | null {
    return this.message.heartbeatMs;
  }

  /** The `state` of the worker, which every handler shares. */
  get state(): State {
    return this.#host.state as State;
  }

  /** The payload as that of a workflow's step: its input, and the results of its ancestors. */
  get step(): Step {
    return new Step(decodeJson(this.message.payload));
  }

  /** @internal The features on which the worker and its gateway agree. */
  get features(): ReadonlySet<string> {
    return this.#host.features;
  }

  /** A logger whose records carry `task`, `kind` and `attempt`. */
  get logger(): Logger {
    const { task, kind, attempt } = this.message;
    return withFields(this.#host.logger, { task, kind, attempt });
  }

  // Cancellation.

  /** A signal that is aborted when the attempt should stop. Its reason is a Cancelled. */
  get signal(): AbortSignal {
    // Most handlers never look at it, and an AbortController costs more than a short handler.
    this.#controller ??= new AbortController();
    if (this.#why !== null) this.#controller.abort(new Cancelled(this.#why));
    return this.#controller.signal;
  }

  /** True if the attempt should stop. */
  get isCancelled(): boolean {
    return this.#why !== null;
  }

  /** The reason to stop, or null. */
  get why(): StopReason | null {
    return this.#why;
  }

  /** Throws Cancelled if the attempt should stop. */
  throwIfCancelled(): void {
    if (this.#why !== null) throw new Cancelled(this.#why);
  }

  /** Waits so many milliseconds. Rejects with Cancelled when the attempt should stop. */
  sleep(ms: number): Promise<void> {
    const signal = this.signal;
    return new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener("abort", stop);
        resolve();
      }, ms);
      if (signal.aborted) stop();
      else signal.addEventListener("abort", stop, { once: true });
    });
  }

  /**
   * @internal Asks the attempt to stop. A later reason replaces an earlier one only if it is
   * `lost`.
   */
  requestStop(why: StopReason): void {
    if (this.#why === null || why === "lost") this.#why = why;
    this.#controller?.abort(new Cancelled(this.#why));
  }

  // Progress.

  /**
   * Reports progress: a fraction from 0 to 1, or fields, of which earlier ones stay.
   *
   * It may be called often; the newest values are sent about ten times a second. It is a heartbeat.
   */
  progress(progress: number | Progress, message?: string): void {
    const given: Progress = typeof progress === "number" ? { fraction: progress } : { ...progress };
    if (message !== undefined) given.message = message;
    const { fraction, done, total } = given;
    if (fraction !== undefined && !(fraction >= 0 && fraction <= 1)) {
      throw new RangeError(`fraction is ${fraction}; it must be from 0 to 1`);
    }
    for (const [name, value] of Object.entries({ done, total })) {
      if (value !== undefined && !(Number.isSafeInteger(value) && value >= 0)) {
        throw new RangeError(`${name} is ${value}; it must be an integer of at least 0`);
      }
    }
    if (given.message !== undefined) given.message = cut(given.message, PROGRESS_MESSAGE_BYTES);
    this.progressFields = { ...this.progressFields, ...given };
    this.#host.touch(this as Context);
  }

  /** Says that the handler still works, for a task with a heartbeat limit. */
  heartbeat(): void {
    this.#host.touch(this as Context);
  }

  // Checkpoints.

  /** True if there is a checkpoint of an earlier attempt, or of `awaitChildren`. */
  get isResumed(): boolean {
    return this.#saved !== null;
  }

  /** Returns the last checkpoint as JSON, or as the schema returns it; null without one. */
  lastCheckpoint<S extends Schema<unknown, unknown> | undefined = undefined>(schema?: S): OutputOf<S> | null {
    if (this.#saved === null) return null;
    const value = readPayload(this.#saved, undefined);
    return (schema === undefined ? value : validateSync(value, schema, "the checkpoint")) as OutputOf<S>;
  }

  /**
   * Keeps a value for the next attempt. It is durable when the promise resolves.
   *
   * Throws RangeError if it is larger than the gateway's bound.
   */
  async checkpoint(value: unknown): Promise<void> {
    const payload = encodePayload(value);
    if (payload.length > this.#host.maxPayload) {
      throw new RangeError(
        `the checkpoint of task ${this.taskId} has ${payload.length} bytes, more than ${this.#host.maxPayload};` +
          " store the data elsewhere and keep a reference",
      );
    }
    await this.#host.saveCheckpoint(this as Context, payload);
    this.#saved = payload;
  }

  // Other ends than a result. A handler returns what these methods return.

  /** Ends without a result: the task waits until another program completes it by `token`. */
  later(options: { withinMs?: number } = {}): Ending {
    return laterEnding(options.withinMs);
  }

  /**
   * Waits for the spawned children: the handler runs again when they have ended, and finds the
   * checkpoint in `lastCheckpoint`. With `failFast` the first child that does not complete fails
   * the task.
   */
  awaitChildren(checkpoint?: unknown, options: { failFast?: boolean } = {}): Ending {
    return childrenEnding(checkpoint, options.failFast ?? false);
  }

  /** Continues the task in another queue. */
  move(queue: string): Ending {
    return new NewEnding("move", { queue: checkName("queue", queue) });
  }

  /** Gives the task back; the attempt is not counted. */
  release(): Ending {
    return new NewEnding("release", { why: "given_up" });
  }

  // Other tasks.

  /**
   * Submits a child with the end of this attempt, in one commit; a failed attempt submits none.
   *
   * Throws RangeError beyond 1 024 tasks, PayloadError if the schema of the kind rejects the
   * payload.
   */
  spawn<K extends AnyKind>(kind: K, payload?: PayloadOf<K>, options: SubmitOptions = {}): void {
    if (this.spawned.length >= PAYLOADS) {
      throw new RangeError(`an attempt spawns at most ${PAYLOADS} tasks; submit more with \`submit\``);
    }
    this.spawned.push(this.#encode({ ...options, kind, payload }));
  }

  /** Submits a task at once; give it a key, because the next attempt may submit it again. */
  async submit<K extends AnyKind>(
    kind: K,
    payload?: PayloadOf<K>,
    options: SubmitOptions & { child?: boolean } = {},
  ): Promise<Submitted> {
    const { child, ...rest } = options;
    const [submitted] = await this.submitMany(
      [{ ...rest, kind, payload }],
      child === undefined ? {} : { child },
    );
    return submitted as Submitted;
  }

  /**
   * Submits 1 to 1 024 tasks in one commit: all or none. With `child` they become children of this
   * task.
   */
  async submitMany(tasks: readonly NewTask[], options: { child?: boolean } = {}): Promise<Submitted[]> {
    this.#need("submit");
    if (tasks.length < 1 || tasks.length > PAYLOADS) {
      throw new RangeError(`${tasks.length} tasks; a submit has 1 to ${PAYLOADS}`);
    }
    const { list, payloads } = submitParts(tasks.map((task) => this.#encode(task)));
    const header: Header = { t: "submit", tasks: list };
    if (options.child) header.parent = { task: this.message.task, fence: this.message.fence };
    const resend = tasks.every((task) => task.key !== undefined);
    return readSubmitted(await this.#host.request(header, payloads, resend), tasks.length);
  }

  /** Returns the state and result of a task, after waiting up to `waitMs` (60 000 at most). */
  async result(task: string, options: { waitMs?: number } = {}): Promise<TaskResult> {
    return readResult(task, await this.#ask("result", resultFields(task, options.waitMs ?? 0)));
  }

  /** Returns the children of this task, in the order of their ids. */
  children(): Promise<Child[]> {
    return this.#pages("children", readChildren);
  }

  /** Returns the payloads of the aggregated tasks of which this one is the batch. */
  items(): Promise<Uint8Array[]> {
    return this.#pages("items", readItems);
  }

  async #pages<T>(what: string, read: (reply: Reply) => Page<T>): Promise<T[]> {
    const all: T[] = [];
    let after: string | null = null;
    do {
      const fields = after === null ? { task: this.taskId } : { task: this.taskId, after };
      const page: Page<T> = read(await this.#ask(what, fields));
      all.push(...page.list);
      after = page.after;
    } while (after !== null);
    return all;
  }

  async #ask(what: string, fields: Record<string, unknown>): Promise<Reply> {
    this.#need("ask");
    return await this.#host.request({ t: "ask", what, ...fields }, [], true);
  }

  #encode(task: NewTask): EncodedTask {
    const { maxPayload, features } = this.#host;
    return encodeTask(task, { maxPayload, features, trace: this.message.trace });
  }

  #need(feature: string): void {
    if (!this.#host.features.has(feature)) {
      throw new Refused("unsupported", `the gateway has no feature \`${feature}\``, "upgrade the gateway");
    }
  }
}
