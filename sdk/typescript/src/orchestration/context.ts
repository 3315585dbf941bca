/**
 * Orchestrations: async functions that survive crashes.
 *
 * ```typescript
 * app.orchestration("order", async (order, ctx) => {
 *   const shelf = await ctx.task("reserve", order.item);
 *   const cents = await ctx.waitSignal("paid", { timeoutMs: 3 * 24 * 3_600_000 });
 *   await ctx.task("ship", shelf);
 *   return `${cents} cents for shelf ${shelf}`;
 * });
 * ```
 *
 * The code may run in another process from one line to the next: it is replayed over the history of
 * what it awaited. So everything that may differ must come from its context.
 */

import type { ResultOf } from "../client.js";
import { SignalTimeout } from "../errors.js";
import { checkName } from "../internal/bounds.js";
import { decodeJson, encodePayload, validateSync } from "../internal/payload.js";
import { encodeTask } from "../internal/requests.js";
import type { Logger } from "../logger.js";
import type { OutputOf, Schema } from "../schema.js";
import { bytes } from "../schema.js";
import type { AnyKind, PayloadOf, SubmitOptions } from "../tasks.js";
import { kindName } from "../tasks.js";
import type { Part } from "./futures.js";
import { All, Branch, First, type Future } from "./futures.js";
import { fractionOf, uuidOf } from "./random.js";
import type { ContinueAsNew, Decode, Operation, Replay } from "./replay.js";
import { runOutside } from "./scope.js";

/** The longest sleep, in milliseconds: about 31 years. */
const SLEEP_MS = 1e12;

type AnySchema = Schema<unknown, unknown> | undefined;

/** Options of a task or a child of an orchestration. */
export interface OperationOptions<R extends AnySchema> extends Omit<SubmitOptions, "headers"> {
  /** The schema of the result; by default that of the kind. */
  result?: R;
}

/** The type of the result of a task: that of the schema, or else that of its kind. */
export type OperationResult<K, R> = R extends Schema<unknown, unknown> ? OutputOf<R> : ResultOf<K>;

/** Options of a wait for a signal. */
export interface SignalOptions<R extends AnySchema> {
  /** The time after which the wait throws SignalTimeout. */
  timeoutMs?: number;
  /** The schema of the payload. */
  result?: R;
}

/** The values of parts that are awaited together. */
export type ValuesOf<P extends readonly unknown[]> = {
  -readonly [I in keyof P]: P[I] extends Part<infer T> ? T : never;
};

/** An index and the value of the part that has it. */
export type FirstOf<P extends readonly unknown[]> = P[number] extends Part<infer T> ? [number, T] : never;

/**
 * The calls and values of an orchestration that its code may await and read.
 *
 * `task`, `child`, `sleep` and `waitSignal` begin at the call, and are awaited then or later.
 */
export class OrchestrationContext {
  readonly #replay: Replay;
  readonly #logger: Logger;

  /** @internal */
  constructor(
    replay: Replay,
    /** The kind of the orchestration. */
    readonly kind: string,
    /** The id of the orchestration. */
    readonly taskId: string,
    logger: Logger,
    /** @internal */
    readonly maxPayload: number,
  ) {
    this.#replay = replay;
    this.#logger = logger;
  }

  // Operations.

  /**
   * Submits a task. The await throws TaskFailed if it does not complete after all its attempts.
   *
   * Throws RangeError beyond a bound, PayloadError for a payload that the schema rejects.
   */
  task<K extends AnyKind, R extends AnySchema = undefined>(
    kind: K,
    payload?: PayloadOf<K>,
    options: OperationOptions<R> = {},
  ): Operation<OperationResult<K, R>> {
    return this.#submit(kind, payload, options, {});
  }

  /** Starts another orchestration, and is otherwise like `task`. */
  child<K extends AnyKind, R extends AnySchema = undefined>(
    kind: K,
    payload?: PayloadOf<K>,
    options: OperationOptions<R> = {},
  ): Operation<OperationResult<K, R>> {
    return this.#submit(kind, payload, options, { orchestration: true });
  }

  #submit<K extends AnyKind, R extends AnySchema>(
    kind: K,
    payload: PayloadOf<K> | undefined,
    options: OperationOptions<R>,
    more: Record<string, unknown>,
  ): Operation<OperationResult<K, R>> {
    const { result, ...submit } = options;
    const task = { ...submit, kind, ...(payload === undefined ? {} : { payload }) };
    const encoded = encodeTask(task, { features: new Set(), maxPayload: this.maxPayload, trace: {} });
    const schema = result ?? (typeof kind === "string" ? undefined : kind.output);
    const decode = decoderOf<OperationResult<K, R>>(schema, `the result of \`${kindName(kind)}\``);
    return this.#replay.submit({ ...encoded.fields, ...more }, encoded.payload, decode);
  }

  /** Waits for a time, across crashes and restarts. */
  sleep(ms: number): Operation<void> {
    if (!(ms >= 0 && ms <= SLEEP_MS)) throw new RangeError(`ms is ${ms}; it must be from 0 to ${SLEEP_MS}`);
    return this.#replay.timer(this.#replay.nowUs + Math.round(ms * 1_000));
  }

  /**
   * Waits for a signal, which may have come before.
   *
   * The await throws SignalTimeout if none comes within `timeoutMs`.
   */
  waitSignal<R extends AnySchema = undefined>(
    name: string,
    options: SignalOptions<R> = {},
  ): Future<OutputOf<R>> {
    checkName("signal", name);
    const decode = decoderOf<OutputOf<R>>(options.result, `the signal \`${name}\``);
    const signal = this.#replay.waitSignal(name, decode);
    const { timeoutMs } = options;
    if (timeoutMs === undefined) return signal;
    const timer = this.sleep(timeoutMs);
    return Branch.begin(async () => {
      const [index, value] = await this.first([signal, timer]);
      if (index === 1) throw new SignalTimeout(name, timeoutMs);
      return value as OutputOf<R>;
    });
  }

  /**
   * Waits for all parts, and returns their values in this order. An error cancels the others.
   *
   * A part is an operation, or a function that is called now. A promise cannot be cancelled.
   */
  all<const P extends readonly Part<unknown>[]>(parts: P): Future<ValuesOf<P>> {
    return new All(parts) as unknown as Future<ValuesOf<P>>;
  }

  /** Waits for the first part, and returns its index and value. The others are cancelled. */
  first<const P extends readonly Part<unknown>[]>(parts: P): Future<FirstOf<P>> {
    return new First<FirstOf<P>>(parts);
  }

  /**
   * Begins the code again with another payload and an empty history: `return ctx.continueAsNew(…)`.
   *
   * An endless orchestration needs it, because its history would grow beyond its bound. Signals that
   * were not taken stay.
   */
  continueAsNew(payload?: unknown): ContinueAsNew {
    return this.#replay.continueAsNew(payload === undefined ? new Uint8Array() : encodePayload(payload));
  }

  // Inputs that are the same in every replay.

  /** Returns the time at which the turn began. `new Date()` and `Date.now()` return it, too. */
  now(): Date {
    return new Date(Math.floor(this.#replay.nowUs / 1_000));
  }

  /** Returns a random number from 0 to below 1, as `Math.random()` does within the code. */
  random(): number {
    return fractionOf(this.#replay.draw());
  }

  /** Returns a random UUID of version 4, as `crypto.randomUUID()` does within the code. */
  uuid(): string {
    return uuidOf(this.#replay.draw(), this.#replay.draw());
  }

  /** True if this part of the code has run before. Use it for logging only. */
  get isReplaying(): boolean {
    return this.#replay.isReplaying;
  }

  /** True if cancellation was requested. The code gets Cancelled where it awaits then. */
  get cancelRequested(): boolean {
    return this.#replay.cancelRequested;
  }

  /** A logger that is silent in a replay, so that each line is logged once. */
  get logger(): Logger {
    const log = (level: keyof Logger): Logger[keyof Logger] => {
      return (message, fields) => {
        if (!this.#replay.isReplaying) runOutside(() => this.#logger[level](message, fields));
      };
    };
    return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  }
}

/** Returns the function that reads a result by a schema. */
function decoderOf<T>(schema: AnySchema, what: string): Decode<T> {
  if (schema === undefined) return (data) => decodeJson(data) as T;
  if (schema === bytes) return (data) => data as T;
  return (data) => validateSync(decodeJson(data), schema, what) as T;
}
