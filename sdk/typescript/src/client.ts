/** The client: submits tasks, starts workflows, waits and watches, over the HTTP API of a server. */

import { randomUUID } from "node:crypto";
import { Conflict, NotFound, Problem, WaitTimeout } from "./client-errors.js";
import type { Event, Orchestration, Run } from "./client-types.js";
import { isEnd, TaskOutcome } from "./client-types.js";
import { Attempts, Lost, PAUSES_MS, pause, unavailable } from "./internal/attempts.js";
import type { TaskBody } from "./internal/bodies.js";
import {
  eventOf,
  jsonOf,
  orchestrationOf,
  runOf,
  submittedOf,
  taskBody,
  withJson,
} from "./internal/bodies.js";
import type { HttpRequest } from "./internal/http.js";
import { isPassing, Transport } from "./internal/http.js";
import type { TaskState } from "./results.js";
import type { MaybeSchema, OutputOf, Schema } from "./schema.js";
import type { AnyKind, Kind, NewTask, PayloadOf, SubmitOptions, Submitted } from "./tasks.js";

/** The longest time for which one request waits, in milliseconds. */
const WAIT_MS = 30_000;

/** A task by its id, or by the result of its submit. */
export type TaskLike = string | Submitted;

/** Options of a client. */
export interface ClientOptions {
  /** The address of the server; by default ONWARD_URL, or `http://127.0.0.1:7070`. */
  url?: string;
  /** The key; by default ONWARD_KEY. */
  key?: string;
  /**
   * The key file of a server on this machine, which is read if there is no key; by default that
   * beside the store ONWARD_STORE or `onward.db`.
   */
  keyFile?: string;
  /** The longest time for the response to one attempt, without that of a wait; by default 30 s. */
  timeoutMs?: number;
  /** The time for which requests are sent again that get no response or are refused; by default 30 s. */
  retryForMs?: number;
}

/** Options of a request that creates something. */
export interface CreateOptions {
  /** State one if the program may repeat the call after it was restarted; by default a random one. */
  idempotencyKey?: string;
  /** Aborts the request. Its effect may have been committed. */
  signal?: AbortSignal;
}

/** Options of a wait. */
export interface WaitOptions {
  /** The time after which WaitTimeout is thrown; by default none. */
  withinMs?: number;
  signal?: AbortSignal;
}

/** Options of a start of a workflow. */
export interface StartOptions extends CreateOptions {
  /** The label of a version that is not the newest. */
  version?: string;
  environment?: string;
  /** Makes the run unique if the template has no key of its own. */
  key?: string;
}

/** Options of a watch. */
export interface WatchOptions {
  /** One task; by default all. */
  task?: TaskLike;
  /** Kinds of tasks; not with `task`. */
  kinds?: readonly string[];
  /** A queue; not with `task`. */
  queue?: string;
  /** True selects the ends of tasks; not with `task`. */
  ends?: boolean;
  /** The cursor behind which it begins; by default at the oldest event that is kept. */
  after?: string;
  signal?: AbortSignal;
}

/** The type of the result of a kind. */
export type ResultOf<K> = K extends Kind<MaybeSchema, infer O> ? OutputOf<O> : unknown;

/**
 * A client of `onward serve`.
 *
 * Submits and starts carry an idempotency key, so that a repeat has no second effect.
 */
export class Client {
  readonly #http: Transport;

  constructor(options: ClientOptions = {}) {
    const { timeoutMs = 30_000, retryForMs = 30_000 } = options;
    if (!(timeoutMs > 0 && retryForMs >= 0)) {
      throw new RangeError(`timeoutMs is ${timeoutMs} and retryForMs ${retryForMs}; they must be positive`);
    }
    this.#http = new Transport({ ...options, timeoutMs, retryForMs });
  }

  /** The address of the server. */
  get url(): string {
    return this.#http.url;
  }

  /** Ends requests and watches that are under way with Unavailable. */
  close(): void {
    this.#http.close();
  }

  /**
   * Submits a task, which is durable when the promise resolves.
   *
   * Rejects with Problem, Unavailable, RangeError for an option out of its range, and PayloadError.
   */
  async submit<K extends AnyKind>(
    kind: K,
    payload?: PayloadOf<K>,
    options: SubmitOptions & CreateOptions = {},
  ): Promise<Submitted> {
    return submittedOf(await this.#create("/v1/tasks", taskBody(newTask(kind, payload, options)), options));
  }

  /** Submits up to 10 000 tasks in one commit, all or none. Returns their results in order. */
  async submitMany(tasks: readonly NewTask[], options: CreateOptions = {}): Promise<Submitted[]> {
    const body = `{"tasks":[${tasks.map(taskBody).join(",")}]}`;
    const reply = await this.#create<{ tasks: TaskBody[] }>("/v1/tasks:batch", body, options);
    return reply.tasks.map(submittedOf);
  }

  /**
   * Submits a task and waits for its end, in one request if the task ends soon.
   *
   * Rejects with WaitTimeout if it has not ended within `withinMs`.
   */
  async submitAndWait<K extends AnyKind>(
    kind: K,
    payload?: PayloadOf<K>,
    options: SubmitOptions & CreateOptions & WaitOptions = {},
  ): Promise<TaskOutcome<ResultOf<K>>> {
    const until = deadline(options);
    const body = taskBody(newTask(kind, payload, options));
    const reply = await this.#create("/v1/tasks", body, options, left(until));
    const schema = typeof kind === "string" ? undefined : kind.output;
    const typed = schema as Schema<unknown, ResultOf<K>> | undefined;
    if (reply.state !== undefined && isEnd(reply.state)) return this.#outcome(reply, typed, options.signal);
    return this.#wait(reply.id, until, options, typed);
  }

  /**
   * Waits for the end of a task, run or orchestration, without polling. The end may be a failure.
   *
   * Rejects with WaitTimeout if it has not ended within `withinMs`.
   */
  wait(task: TaskLike, options: WaitOptions = {}): Promise<TaskOutcome> {
    return this.#wait(idOf(task), deadline(options), options);
  }

  async #wait<O = unknown>(
    task: string,
    until: number | undefined,
    options: WaitOptions,
    schema?: Schema<unknown, O>,
  ): Promise<TaskOutcome<O>> {
    let gap: number = PAUSES_MS[0];
    for (;;) {
      const asked = performance.now();
      const waitMs = left(until);
      const record = await this.#get<TaskBody>(`/v1/tasks/${path(task)}`, options.signal, waitMs);
      if (isEnd(record.state as string)) return this.#outcome(record, schema, options.signal);
      const now = performance.now();
      if (until !== undefined && now >= until) throw new WaitTimeout(task, options.withinMs ?? 0);
      // A server that stops, or one behind a proxy, may respond before the time.
      if (now - asked < waitMs / 2) {
        const signal = this.#http.signal(options.signal);
        await pause(until === undefined ? gap : Math.min(gap, until - now), signal);
        gap = Math.min(2 * gap, PAUSES_MS[1]);
      }
    }
  }

  /** Returns the state of a task now, and its result if it is completed. */
  async result(task: TaskLike): Promise<TaskOutcome> {
    return this.#outcome(await this.#get<TaskBody>(`/v1/tasks/${path(idOf(task))}`));
  }

  async #outcome<O = unknown>(
    record: TaskBody,
    schema?: Schema<unknown, O>,
    signal?: AbortSignal,
  ): Promise<TaskOutcome<O>> {
    const state = record.state as TaskState;
    // The task has the result as JSON, in which long numbers lose digits. This is as it is.
    const request: HttpRequest = { method: "GET", path: `/v1/tasks/${path(record.id)}/result`, signal };
    const payload = state === "completed" ? await this.#http.send(request) : null;
    return new TaskOutcome(record.id, state, payload, record.error ?? null, schema);
  }

  /**
   * Cancels a task, run or orchestration. Returns `ended`, or `requested` if it runs and was asked to
   * stop. Rejects with Conflict if it has ended in another way.
   */
  async cancel(task: TaskLike): Promise<"ended" | "requested"> {
    const where = `/v1/tasks/${path(idOf(task))}`;
    try {
      const request: HttpRequest = { method: "POST", path: `${where}/cancel`, body: "{}" };
      return (await this.#http.json<{ effect: "ended" | "requested" }>(request)).effect;
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      // An earlier attempt of this request may have cancelled it.
      if ((await this.#get<TaskBody>(where)).state === "cancelled") return "ended";
      throw error;
    }
  }

  /**
   * Sends a signal to a step that waits in a run, or to an orchestration.
   *
   * Rejects with Unavailable if the connection is lost before the response: a second signal might
   * count.
   */
  async signal(task: TaskLike, name: string, payload: unknown = null): Promise<void> {
    const body = jsonOf(payload);
    const send = (what: string) => {
      const where = `/v1/${what}/${path(idOf(task))}/signals/${path(name)}`;
      return this.#http.send({ method: "POST", path: where, body, isRepeatable: false });
    };
    try {
      await send("runs");
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
      await send("orchestrations");
    }
  }

  /** Starts a run of a stored workflow with an input. */
  async start(workflow: string, payload: unknown = null, options: StartOptions = {}): Promise<Submitted> {
    const { version, environment, key } = options;
    const name = version === undefined ? workflow : `${workflow}@${version}`;
    const fields = { environment, key };
    const body = payload === null ? JSON.stringify(fields) : withJson(fields, "input", payload);
    return submittedOf(await this.#create(`/v1/templates/${path(name)}/runs`, body, options));
  }

  /** Starts an orchestration. `key` makes it unique among the active ones of its kind. */
  async startOrchestration(
    kind: string,
    payload: unknown = null,
    options: CreateOptions & { key?: string } = {},
  ): Promise<Submitted> {
    const body = withJson({ kind, key: options.key }, "payload", payload);
    return submittedOf(await this.#create("/v1/orchestrations", body, options));
  }

  /** Returns a run of a workflow and its steps. */
  async run(task: TaskLike): Promise<Run> {
    return runOf(await this.#get(`/v1/runs/${path(idOf(task))}`));
  }

  /** Returns what an orchestration awaits, and the status and values that it published. */
  async query(task: TaskLike): Promise<Orchestration> {
    return orchestrationOf(await this.#get(`/v1/orchestrations/${path(idOf(task))}`));
  }

  /**
   * Yields events as they come, without end: leave the loop, or abort the signal. After a cut it
   * continues behind the last event.
   *
   * Rejects with Unavailable if the server is gone for longer than `retryForMs`, and with Problem.
   */
  async *watch(options: WatchOptions = {}): AsyncGenerator<Event, void> {
    const where = watchPath(options);
    const attempts = new Attempts(this.#http.retryForMs);
    const ended = new AbortController();
    const own = options.signal === undefined ? ended.signal : AbortSignal.any([options.signal, ended.signal]);
    let cursor = options.after;
    try {
      for (;;) {
        try {
          for await (const message of this.#http.events(where, cursor, own, () => attempts.succeeded())) {
            if (message.event === "bye") break;
            const event = eventOf(message);
            if (event === null) continue;
            attempts.progressed();
            cursor = event.cursor;
            yield event;
          }
          throw new Lost("the stream was cut", true);
        } catch (error) {
          const failure = error instanceof Lost ? unavailable(this.url, error) : (error as Error);
          const passes = error instanceof Lost || (error instanceof Problem && isPassing(error));
          if (!passes) throw error;
          const least = error instanceof Problem ? error.retryAfterMs : undefined;
          await attempts.failed(failure, this.#http.signal(own), least);
        }
      }
    } finally {
      ended.abort();
    }
  }

  #get<T>(where: string, signal?: AbortSignal, waitMs = 0): Promise<T> {
    const headers: Record<string, string> = waitMs > 0 ? { prefer: prefer(waitMs) } : {};
    return this.#http.json({ method: "GET", path: where, headers, waitMs, signal });
  }

  #create<T = TaskBody>(where: string, body: string, options: CreateOptions, waitMs = 0): Promise<T> {
    const headers: Record<string, string> = { "idempotency-key": options.idempotencyKey ?? randomUUID() };
    if (waitMs > 0) headers.prefer = prefer(waitMs);
    return this.#http.json({ method: "POST", path: where, body, headers, waitMs, signal: options.signal });
  }
}

function newTask<K extends AnyKind>(
  kind: K,
  payload: PayloadOf<K> | undefined,
  options: SubmitOptions,
): NewTask {
  return payload === undefined ? { ...options, kind } : { ...options, kind, payload };
}

function watchPath(options: WatchOptions): string {
  const query = new URLSearchParams();
  if (options.kinds?.length) query.set("kinds", options.kinds.join(","));
  if (options.queue) query.set("queue", options.queue);
  if (options.ends) query.set("ends", "true");
  if (options.task === undefined) return `/v1/events${query.size > 0 ? `?${query}` : ""}`;
  if (query.size > 0) {
    throw new RangeError("kinds, queue and ends select among all tasks; leave them out with `task`");
  }
  return `/v1/tasks/${path(idOf(options.task))}/events`;
}

function idOf(task: TaskLike): string {
  return typeof task === "string" ? task : task.task;
}

function path(text: string): string {
  return encodeURIComponent(text).replaceAll("%40", "@");
}

function deadline(options: WaitOptions): number | undefined {
  return options.withinMs === undefined ? undefined : performance.now() + options.withinMs;
}

function left(until: number | undefined): number {
  return until === undefined ? WAIT_MS : Math.max(0, Math.min(WAIT_MS, until - performance.now()));
}

function prefer(waitMs: number): string {
  return `wait=${Math.max(1, Math.round(waitMs))}ms`;
}
