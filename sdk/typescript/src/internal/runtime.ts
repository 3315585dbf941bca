/** The running part of a worker: receives tasks, runs handlers, sends their ends. */

import type { Host } from "../context.js";
import { Context } from "../context.js";
import { OnwardError } from "../errors.js";
import type { Logger } from "../logger.js";
import { STICKY, TurnEnding } from "../orchestration/code.js";
import { VERSION } from "../version.js";
import type { Address } from "./address.js";
import { canReconnect, formatAddress } from "./address.js";
import type { End } from "./ends.js";
import {
  className,
  completed,
  Ending,
  endedOtherwise,
  failed,
  isStop,
  released,
  stopped,
  turnEnded,
  withSpawned,
} from "./ends.js";
import type { Header } from "./frames.js";
import { HEADER_BYTES, PAYLOAD_BYTES } from "./frames.js";
import type { Listener } from "./link.js";
import { Link } from "./link.js";
import type { Reply, Stop, TaskMessage, Welcome } from "./messages.js";
import { HELD, Outbox } from "./outbox.js";
import type { Entry } from "./registry.js";
import { isPromise } from "./registry.js";
import { Scheduler } from "./scheduler.js";

/** The time that handlers have to return after their signals were aborted at the end of a drain. */
const ABORT_MS = 5_000;

/**
 * The part of the gateway's time limit of a drain after which running handlers are asked to stop.
 */
const DRAIN_FRACTION = 0.8;

const FEATURES = ["ask", "headers", "submit"];

/** The feature of workers with orchestrations. */
const TURNS = "turns";

/** The options and callbacks that a worker passes to its runtime. */
export interface RuntimeOptions {
  address: Address;
  /** The handlers, within their middleware. */
  entries: ReadonlyMap<string, Entry>;
  name: string;
  key: string | undefined;
  slots: number;
  prefetch: number;
  graceMs: number;
  state: unknown;
  logger: Logger;
}

/** One run of a worker, from its first connection to its last. */
export class Runtime implements Listener, Host {
  readonly state: unknown;
  readonly logger: Logger;
  maxPayload = PAYLOAD_BYTES;
  features: ReadonlySet<string> = new Set();
  /** Ends when no connection will follow, with the error that ended the last one. */
  readonly closed: Promise<Error | null>;
  readonly #options: RuntimeOptions;
  readonly #scheduler: Scheduler;
  readonly #outbox: Outbox;
  readonly #link: Link;
  #resolveClosed: (error: Error | null) => void = () => {};
  #wakeIdle: () => void = () => {};
  #isDraining = false;
  #isStopping = false;
  #failure: OnwardError | null = null;

  constructor(options: RuntimeOptions) {
    this.#options = options;
    this.state = options.state;
    this.logger = options.logger;
    this.#scheduler = new Scheduler(options.slots, (context, entry) => this.#run(context, entry));
    this.#outbox = new Outbox(options.slots + options.prefetch);
    this.#outbox.onIdle = () => this.#wakeIdle();
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#link = new Link(options.address, this.#outbox, this, options.logger);
  }

  /** Connects. */
  start(): void {
    this.#link.start();
  }

  /** Drains and ends the run. A second call ends it at once. */
  stop(): void {
    if (this.#isStopping) {
      this.#leave("the worker was ended at once");
      return;
    }
    this.#isStopping = true;
    if (!this.#isDraining) void this.#drain(this.#options.graceMs);
  }

  /** Waits for handlers that still run after the connection has ended, at most 5 s. */
  async waitForHandlers(): Promise<void> {
    if (this.#failure !== null) return;
    this.#isDraining = true;
    this.#outbox.forgetEnds();
    await this.#becomesIdle(ABORT_MS);
  }

  /** Releases what has not started, waits for the rest, and says goodbye. */
  async #drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    for (const context of this.#scheduler.release()) {
      this.#outbox.end(context, released(context.message, "draining"));
    }
    if (!(await this.#becomesIdle(graceMs))) {
      const running = [...this.#outbox.held.values()];
      this.logger.warn(`${running.length} tasks still run after ${graceMs} ms: they are asked to stop`);
      for (const context of running) context.requestStop("stopping");
      if (!(await this.#becomesIdle(ABORT_MS))) {
        this.#leave("handlers did not stop");
        return;
      }
    }
    const last = this.#isStopping || !canReconnect(this.#options.address);
    this.#isDraining = false;
    if (!last) this.#outbox.drain(false);
    this.#link.sayBye(last);
  }

  async #becomesIdle(ms: number): Promise<boolean> {
    return await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms);
      this.#wakeIdle = () => {
        clearTimeout(timer);
        resolve(true);
      };
      this.#outbox.drain(true);
    });
  }

  /**
   * Closes the connection without `bye`, so that the gateway treats what is left as that of a
   * crashed worker.
   */
  #leave(reason: string): void {
    for (const { taskId, kind } of this.#outbox.held.values()) {
      this.logger.error(`task ${taskId} of kind \`${kind}\` has not ended; it runs again elsewhere`);
    }
    const { held, kept } = this.#outbox;
    this.#failure ??= new OnwardError(
      `${reason}: ${held.size} tasks still run and ${kept.size} ends were not acknowledged; their tasks may run again`,
    );
    this.#link.close();
  }

  // Reports of the link.

  hello(session: string | null): Header {
    const kinds: Record<string, unknown> = {};
    for (const [kind, entry] of this.#options.entries) kinds[kind] = entry.fields;
    const header: Header = {
      t: "hello",
      protocol: [1],
      sdk: "onward-typescript",
      version: VERSION,
      language: `node ${process.versions.node}`,
      name: this.#options.name,
      kinds,
      slots: this.#options.slots,
      features: this.#hasTurns() ? [...FEATURES, TURNS, STICKY] : FEATURES,
    };
    if (this.#options.key !== undefined) header.key = this.#options.key;
    if (session === null) return header;
    const resume = { session, tasks: this.#heldTasks() };
    header.resume = resume;
    // Tasks with long ids may not all fit. Those left out run again elsewhere.
    while (Buffer.byteLength(JSON.stringify(header)) > HEADER_BYTES && resume.tasks.length > 0) {
      resume.tasks.length = resume.tasks.length >> 1;
    }
    return header;
  }

  #hasTurns(): boolean {
    return [...this.#options.entries.values()].some(({ isOrchestration }) => isOrchestration);
  }

  #heldTasks(): { task: string; fence: string }[] {
    const running = [...this.#outbox.held.values()].map(({ message }) => message);
    return [...running, ...this.#outbox.kept.values()]
      .slice(0, HELD)
      .map(({ task, fence }) => ({ task, fence }));
  }

  onWelcome({ maxPayload, features, gateway, session }: Welcome): void {
    this.maxPayload = maxPayload;
    this.features = features;
    const peer = gateway || "a gateway";
    this.logger.info(`connected to ${peer} at ${formatAddress(this.#options.address)}, session ${session}`);
    if (this.#hasTurns() && !features.has(TURNS)) {
      this.logger.error(
        "the gateway has no feature `turns`, so no orchestration runs here; upgrade the gateway",
      );
    }
  }

  onTasks(tasks: TaskMessage[]): void {
    this.#outbox.receive(tasks.length);
    for (const task of tasks) {
      if (this.#outbox.knows(task.task, task.fence)) continue;
      const entry = this.#options.entries.get(task.kind);
      const context = new Context(task, this);
      this.#outbox.held.set(task.task, context);
      if (entry === undefined) {
        this.logger.error(`no handler for the kind \`${task.kind}\`: task ${task.task} is given back`);
        this.#outbox.end(context, released(task, "unknown_kind"));
      } else if (this.#isDraining) {
        this.#outbox.end(context, released(task, "draining"));
      } else {
        this.#scheduler.add(context, entry);
      }
    }
    this.#scheduler.start();
  }

  onStop({ task, fence, why, graceMs }: Stop): void {
    const context = this.#outbox.held.get(task);
    if (context?.message.fence !== fence) return;
    context.requestStop(why);
    if (this.#scheduler.discard(context)) {
      this.#outbox.end(context, stopped(context.message, why, null));
      return;
    }
    const report = () => {
      if (this.#outbox.held.get(task) !== context) return;
      const text = `task ${task} of kind \`${context.kind}\` still runs after its grace`;
      this.logger.error(`${text}; have the handler follow \`ctx.signal\``);
    };
    setTimeout(report, Math.min(graceMs, 2 ** 31 - 1)).unref();
  }

  onLost(tasks: string[] | null): void {
    for (const task of tasks ?? [...this.#outbox.held.keys()]) {
      const context = this.#outbox.held.get(task);
      if (context === undefined) continue;
      this.onStop({ t: "stop", task, fence: context.message.fence, why: "lost", graceMs: ABORT_MS });
    }
  }

  onDrain(why: string, withinMs: number): void {
    this.logger.info(`the gateway drains: ${why}`);
    if (!this.#isDraining) void this.#drain(Math.min(this.#options.graceMs, withinMs * DRAIN_FRACTION));
  }

  onClosed(error: Error | null): void {
    this.#resolveClosed(error ?? this.#failure);
  }

  // Running handlers.

  #run(context: Context, entry: Entry): void {
    const ended = (end: End | null) => {
      this.#outbox.end(context, end);
      this.#scheduler.finished(entry);
    };
    const succeed = (value: unknown) => ended(this.#endOfValue(context, value));
    const fail = (error: unknown) => ended(this.#endOfError(context, error));
    let value: unknown;
    try {
      value = entry.call(context);
    } catch (error) {
      fail(error);
      return;
    }
    // A handler that does not wait ends here, without a turn of the event loop.
    if (isPromise(value)) value.then(succeed, fail);
    else succeed(value);
  }

  #endOfValue(context: Context, value: unknown): End | null {
    if (context.why === "lost") return null;
    const task = context.message;
    if (value instanceof TurnEnding) return turnEnded(task, value.reply, this.maxPayload);
    const end =
      value instanceof Ending
        ? endedOtherwise(task, value, this.maxPayload)
        : completed(task, value, this.maxPayload);
    return this.#withExtras(context, end);
  }

  #withExtras(context: Context, end: End): End {
    const { message, spawned, progressFields } = context;
    const whole = spawned.length > 0 ? withSpawned(end, message, spawned, this.maxPayload) : end;
    if (progressFields !== null) whole.entry.progress = progressFields;
    return whole;
  }

  #endOfError(context: Context, error: unknown): End | null {
    const { message: task, why } = context;
    if (why !== null) {
      if (!isStop(error)) this.logger.warn(`task ${task.task} failed after it was asked to stop`, { error });
      return stopped(task, why, error);
    }
    // The stack is of use only where the handler did not choose the failure.
    const shown = error instanceof OnwardError ? error.message : error;
    const { task: id, kind, attempt } = task;
    this.logger.info(`the attempt failed: ${className(error)}`, { task: id, kind, attempt, error: shown });
    return this.#withExtras(context, failed(task, error));
  }

  // The host of the contexts.

  touch(context: Context): void {
    this.#outbox.touch(context);
  }

  saveCheckpoint(context: Context, payload: Uint8Array): Promise<void> {
    return this.#outbox.saveCheckpoint(context, payload);
  }

  request(header: Header, payloads: Uint8Array[], resend: boolean): Promise<Reply> {
    return this.#outbox.request(header, payloads, resend);
  }
}
