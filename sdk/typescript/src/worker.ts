/** The worker: registers handlers and runs them for a gateway. */

import { Batch } from "./batch.js";
import type { Context } from "./context.js";
import { OnwardError } from "./errors.js";
import type { Environment } from "./internal/address.js";
import { parseAddress } from "./internal/address.js";
import { checkInteger, checkMs } from "./internal/bounds.js";
import type { Ending } from "./internal/ends.js";
import { PAYLOADS, ProtocolError } from "./internal/frames.js";
import { HELD } from "./internal/outbox.js";
import { decodeJson } from "./internal/payload.js";
import type { AnyMiddleware, Entry } from "./internal/registry.js";
import { chosen, entryOf, isPromise, typedCall, wrap } from "./internal/registry.js";
import { Runtime } from "./internal/runtime.js";
import type { Logger } from "./logger.js";
import { standardError } from "./logger.js";
import { Code, orchestrationEntry } from "./orchestration/code.js";
import type { OrchestrationContext } from "./orchestration/context.js";
import type { ContinueAsNew } from "./orchestration/replay.js";
import { Step } from "./results.js";
import type { InputOf, MaybeSchema, OutputOf, Schema } from "./schema.js";
import type { Kind, KindOptions } from "./tasks.js";
import { defineKind } from "./tasks.js";

const DEFAULT_SLOTS = 8;
const DEFAULT_GRACE_MS = 30_000;

/** Options of a worker. */
export interface WorkerOptions<State> {
  /** `child`, `ipc://PATH`, `tcp://HOST:PORT` or `https://HOST`; by default ONWARD_GATEWAY. */
  gateway?: string;
  /** The name in logs and lists. */
  name?: string;
  /**
   * The number of handlers that run at once; by default ONWARD_SLOTS, which the gateway sets, or
   * else 8.
   */
  slots?: number;
  /**
   * The number of tasks that are fetched ahead of free slots; by default 0. It makes short tasks
   * faster, and tasks wait in this process although another worker may be idle. `onward work --app`
   * with `--slots` sends no more than that at once, so give it the sum of both.
   */
  prefetch?: number;
  /** The time that running handlers have after SIGTERM or SIGINT; by default 30 000 ms. */
  graceMs?: number;
  /** The worker's secret; by default ONWARD_KEY. */
  key?: string;
  /** Any value, as `ctx.state` in every handler. */
  state?: State;
  /** By default one line a record on standard error. */
  logger?: Logger;
}

/** Options of a handler: those of its kind, and the schemas of payload and result. */
export interface HandlerOptions<I extends MaybeSchema, O extends MaybeSchema> extends KindOptions {
  input?: I;
  output?: O;
}

/** A value, or a promise of one. */
export type Awaitable<T> = T | Promise<T>;

/**
 * A function that handles a kind. It may return what `ctx.later` and such return, instead of a
 * result.
 */
export type Call<I, O, State> = (
  task: OutputOf<I>,
  ctx: Context<State>,
) => Awaitable<O extends Schema<unknown, unknown> ? InputOf<O> | Ending : unknown>;

/** The schemas of an orchestration: of its input and of its result. They validate synchronously. */
export interface OrchestrationOptions<I extends MaybeSchema, O extends MaybeSchema> {
  input?: I;
  output?: O;
}

/** An async function that is the code of a kind of orchestrations. */
export type Orchestrate<I, O> = (
  input: OutputOf<I>,
  ctx: OrchestrationContext,
) => Promise<(O extends Schema<unknown, unknown> ? InputOf<O> : unknown) | ContinueAsNew>;

/**
 * A function around every handler. `next` runs the handler, and resolves to its result or rejects
 * with its error. Throw another error to change the end of the attempt; the result itself stays.
 */
export type Middleware<State = unknown> = (
  ctx: Context<State>,
  next: () => Promise<unknown>,
) => Awaitable<unknown>;

/** The base of handlers that are classes. `call` has the same parameters as a handler function. */
export abstract class Handler<Payload = unknown, State = unknown> implements KindOptions {
  abstract readonly kind: string;
  readonly input?: Schema<unknown, Payload>;
  readonly output?: Schema<unknown, unknown>;
  readonly limit?: number;
  readonly retry?: NonNullable<KindOptions["retry"]>;
  readonly timeoutMs?: number;
  readonly heartbeatMs?: number;

  abstract call(task: Payload, ctx: Context<State>): unknown;
}

type AnyCall = (payload: unknown, context: Context) => unknown;

/** A set of handlers, and the connection to the gateway that sends their tasks. */
export class Worker<State = undefined> {
  readonly #options: WorkerOptions<State>;
  readonly #logger: Logger;
  readonly #slots: number;
  readonly #prefetch: number;
  readonly #graceMs: number;
  readonly #entries = new Map<string, Entry>();
  readonly #orchestrations = new Map<string, Code>();
  readonly #middleware: AnyMiddleware[] = [];
  #runtime: Runtime | null = null;

  /** Throws RangeError for an option out of its range. */
  constructor(options: WorkerOptions<State> = {}) {
    this.#options = options;
    this.#logger = options.logger ?? standardError;
    this.#slots = checkInteger("slots", options.slots ?? slotsOf(process.env), 1, HELD);
    this.#prefetch = checkInteger("prefetch", options.prefetch ?? 0, 0, HELD - this.#slots);
    this.#graceMs = checkMs("graceMs", options.graceMs ?? DEFAULT_GRACE_MS, 0);
  }

  // Registration.

  /**
   * Registers a function as the handler of a kind, and returns the kind with its types.
   *
   * `input` and `output` are schemas of the Standard Schema interface; without them payload and
   * result are any JSON. Throws RangeError for an option out of its range, Error for a kind that
   * has a handler.
   */
  handler(kind: string, call: Call<undefined, undefined, State>): Kind<undefined, undefined>;
  handler<I extends MaybeSchema = undefined, O extends MaybeSchema = undefined>(
    kind: string,
    options: HandlerOptions<I, O>,
    call: Call<I, O, State>,
  ): Kind<I, O>;
  handler<I extends MaybeSchema, O extends MaybeSchema>(
    kind: Kind<I, O>,
    call: Call<I, O, State>,
  ): Kind<I, O>;
  handler<I extends MaybeSchema, O extends MaybeSchema>(
    kind: Kind<I, O>,
    options: KindOptions,
    call: Call<I, O, State>,
  ): Kind<I, O>;
  handler(kind: string | Kind, ...rest: unknown[]): Kind {
    const call = rest.pop() as AnyCall;
    const options = (rest[0] ?? {}) as HandlerOptions<MaybeSchema, MaybeSchema>;
    const defined = typeof kind === "string" ? defineKind(kind, options) : kind;
    this.#add(entryOf(defined.kind, options, typedCall(defined.input, defined.output, call)));
    return defined;
  }

  /**
   * Registers a function that chooses which steps of a workflow come next.
   *
   * It returns one of `choices`, a list of them, or null for no step. A choice outside them fails
   * the step. `input` is the schema of the run's input.
   */
  decision<const C extends readonly string[], I extends MaybeSchema = undefined>(
    kind: string,
    options: KindOptions & { choices: C; input?: I },
    call: (
      step: Step<OutputOf<I>>,
      ctx: Context<State>,
    ) => Awaitable<C[number] | readonly C[number][] | null>,
  ): void {
    const { choices, input } = options;
    const run = (context: Context): unknown => {
      const step = new Step<OutputOf<I>>(decodeJson(context.payload), input as Schema<unknown, OutputOf<I>>);
      const choice = call(step, context as Context<State>);
      return isPromise(choice)
        ? choice.then((found) => chosen(kind, found, choices))
        : chosen(kind, choice, choices);
    };
    this.#add(entryOf(kind, options, run));
  }

  /**
   * Registers a function that works through a cursor, with a checkpoint after `every` positions
   * (100).
   *
   * `initial` is the first value of `batch.partial`, which is the result if the function returns
   * nothing.
   */
  batch<Partial = unknown>(
    kind: string,
    options: KindOptions & { every?: number; initial?: Partial },
    call: (batch: Batch<Partial>, ctx: Context<State>) => Awaitable<unknown>,
  ): void {
    const every = checkInteger("every", options.every ?? 100, 1);
    const run = async (context: Context): Promise<unknown> => {
      const batch = new Batch<Partial>(context, every, (options.initial ?? null) as Partial);
      const result = await call(batch, context as Context<State>);
      return result === undefined ? batch.partial : result;
    };
    this.#add(entryOf(kind, options, run));
  }

  /**
   * Registers an async function as the code of a kind of orchestrations, and returns the kind with its
   * types.
   *
   * It may only await what its context returns, and is replayed when an event arrives; see
   * OrchestrationContext. Middleware does not run around it.
   */
  orchestration(kind: string, call: Orchestrate<undefined, undefined>): Kind<undefined, undefined>;
  orchestration<I extends MaybeSchema = undefined, O extends MaybeSchema = undefined>(
    kind: string,
    options: OrchestrationOptions<I, O>,
    call: Orchestrate<I, O>,
  ): Kind<I, O>;
  orchestration<I extends MaybeSchema, O extends MaybeSchema>(
    kind: Kind<I, O>,
    call: Orchestrate<I, O>,
  ): Kind<I, O>;
  orchestration(kind: string | Kind, ...rest: unknown[]): Kind {
    const call = rest.pop() as (input: unknown, ctx: OrchestrationContext) => unknown;
    const options = (rest[0] ?? {}) as OrchestrationOptions<MaybeSchema, MaybeSchema>;
    const defined = typeof kind === "string" ? defineKind(kind, options) : kind;
    const code = new Code(defined.kind, defined.input, defined.output, call);
    this.#add(orchestrationEntry(code));
    this.#orchestrations.set(defined.kind, code);
    return defined;
  }

  /** Registers an object of a class of handlers. */
  register<Payload>(handler: Handler<Payload, State>): void {
    const call: AnyCall = (payload, context) => handler.call(payload as Payload, context as Context<State>);
    this.#add(entryOf(handler.kind, handler, typedCall(handler.input, handler.output, call)));
  }

  /** Registers a function that runs around every handler; the first one is outermost. */
  use(middleware: Middleware<State>): void {
    this.#checkIdle();
    this.#middleware.push(middleware as AnyMiddleware);
  }

  #add(entry: Entry): void {
    this.#checkIdle();
    if (this.#entries.has(entry.kind)) throw new Error(`the kind \`${entry.kind}\` has a handler already`);
    if (this.#entries.size >= PAYLOADS) throw new RangeError(`a worker has at most ${PAYLOADS} kinds`);
    this.#entries.set(entry.kind, entry);
  }

  #checkIdle(): void {
    if (this.#runtime !== null) throw new Error("the worker runs already; register handlers before");
  }

  /** The kinds that have a handler. */
  get kinds(): string[] {
    return [...this.#entries.keys()];
  }

  /** The `state` of the worker. */
  get state(): State {
    return this.#options.state as State;
  }

  /** @internal Returns the entry of a kind within the middleware. */
  entryOf(kind: string): Entry {
    const entry = this.#entries.get(kind);
    if (entry === undefined) {
      throw new RangeError(`no handler for the kind \`${kind}\`; kinds: ${this.kinds.join(", ") || "none"}`);
    }
    return { ...entry, call: wrap(entry, this.#middleware) };
  }

  /** @internal Returns the code of an orchestration. */
  orchestrationOf(kind: string): Code {
    const code = this.#orchestrations.get(kind);
    if (code === undefined) {
      const known = [...this.#orchestrations.keys()].join(", ") || "none";
      throw new RangeError(`no orchestration of the kind \`${kind}\`; kinds: ${known}`);
    }
    return code;
  }

  // Running.

  /**
   * Runs until SIGTERM, SIGINT, `stop`, or the gateway's drain of a child. Running handlers have
   * `graceMs` then, and a second signal ends the run at once.
   *
   * It exits the process with 1 if the gateway refuses the worker, the parent of a child has died,
   * or handlers did not stop. Use `serve` to handle that.
   */
  async run(): Promise<void> {
    const onSignal = (signal: NodeJS.Signals) => {
      this.#logger.info(`${signal}: the worker drains`);
      this.stop();
    };
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
    try {
      await this.serve();
    } catch (error) {
      if (!(error instanceof OnwardError || error instanceof ProtocolError || error instanceof RangeError))
        throw error;
      this.#logger.error(`the worker ends: ${error.message}`);
      process.exit(1);
    } finally {
      process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
    }
  }

  /**
   * Does what `run` does, without signals and without an exit.
   *
   * Throws Refused if the gateway refuses the worker, Unavailable if the parent of a child has
   * died, OnwardError if handlers did not stop, and RangeError if there is no address.
   */
  async serve(): Promise<void> {
    this.#checkIdle();
    if (this.#entries.size === 0) {
      throw new RangeError('the worker has no handler; register one with `app.handler("kind", …)`');
    }
    const runtime = this.#makeRuntime();
    this.#runtime = runtime;
    try {
      runtime.start();
      const error = await runtime.closed;
      await runtime.waitForHandlers();
      if (error !== null) throw error;
    } finally {
      this.#runtime = null;
    }
  }

  #makeRuntime(): Runtime {
    return new Runtime({
      address: parseAddress(this.#options.gateway, process.env),
      entries: new Map(this.kinds.map((kind) => [kind, this.entryOf(kind)])),
      name: this.#options.name ?? "",
      key: this.#options.key ?? process.env.ONWARD_KEY,
      slots: this.#slots,
      prefetch: this.#prefetch,
      graceMs: this.#graceMs,
      state: this.#options.state,
      logger: this.#logger,
    });
  }

  /** Ends `run` as SIGTERM does. It does nothing if the worker does not run. */
  stop(): void {
    this.#runtime?.stop();
  }
}

function slotsOf(environment: Environment): number {
  const text = environment.ONWARD_SLOTS;
  if (text === undefined) return DEFAULT_SLOTS;
  if (!/^\d{1,9}$/.test(text))
    throw new RangeError(`ONWARD_SLOTS is \`${text}\`; it must be an integer of at least 1`);
  // A gateway may allow more; this process holds no more than its bound.
  return Math.min(Number(text), HELD);
}
