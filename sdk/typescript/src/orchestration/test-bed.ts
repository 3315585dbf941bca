/** Orchestrations without a gateway, for tests. */

import { readFile } from "node:fs/promises";
import { OnwardError } from "../errors.js";
import { decodeJson, encodePayload } from "../internal/payload.js";
import type { Logger } from "../logger.js";
import { standardError } from "../logger.js";
import type { AnyKind, PayloadOf } from "../tasks.js";
import { kindName } from "../tasks.js";
import type { Worker } from "../worker.js";
import type { Code } from "./code.js";
import type { Replay } from "./replay.js";
import { runOutside } from "./scope.js";
import type { DecisionAfter, TurnEvent, TurnReply } from "./turn.js";
import { checkEvents, dataOf, textOf } from "./turn.js";

const realImmediate = setImmediate;

/** Options of an orchestration's test. */
export interface OrchestrationTestOptions {
  /** The time at its start; by default the beginning of 2026. */
  now?: Date;
  /** The logger of the code; by default standard error. */
  logger?: Logger;
}

/** An open task of an orchestration, with the fields of its submit as the protocol writes them. */
export type OpenTask = Readonly<DecisionAfter>;

/**
 * An orchestration without a gateway: the test ends its tasks, sends signals and moves the clock.
 *
 * Each of these replays the code from its beginning, so that a test shows that it is deterministic.
 * At the end of the code they also reject for an operation that the code never awaited, and for a
 * rejected promise that it never awaited.
 *
 * ```typescript
 * const order = await OrchestrationTest.start(app, "order", { item: "tea" });
 * await order.complete("reserve", 4);
 * await order.signal("paid", 1999);
 * assert.equal(order.result, "1999 cents for shelf 4");
 * ```
 */
export class OrchestrationTest {
  /** The events so far, as the protocol writes them. */
  history: TurnEvent[] = [];
  /** The tasks that have not ended, by their operations. */
  readonly tasks = new Map<number, OpenTask>();
  /** The times of the timers that run, in microseconds since 1970, by their operations. */
  readonly timers = new Map<number, number>();
  /** The names of the signals for which the code waits. */
  waits: readonly string[] = [];
  /** The number of times that it has continued as new. */
  generation = 0;
  readonly #code: Code;
  readonly #logger: Logger;
  #payload: Uint8Array;
  #nowUs: number;
  #end: TurnReply["end"] = { do: "wait" };

  private constructor(code: Code, payload: unknown, options: OrchestrationTestOptions) {
    this.#code = code;
    this.#logger = options.logger ?? standardError;
    this.#payload = payload === undefined ? new Uint8Array() : encodePayload(payload);
    this.#nowUs = (options.now?.getTime() ?? 1_767_225_600_000) * 1_000;
  }

  /** Starts an orchestration of a worker. Rejects with what its code throws as a fault. */
  static async start<State, K extends AnyKind>(
    worker: Worker<State>,
    kind: K,
    payload?: PayloadOf<K>,
    options: OrchestrationTestOptions = {},
  ): Promise<OrchestrationTest> {
    const test = new OrchestrationTest(worker.orchestrationOf(kindName(kind)), payload, options);
    await test.#begin([]);
    return test;
  }

  async #begin(carried: TurnEvent[]): Promise<void> {
    this.history = carried;
    await this.#turn([{ e: "started", at_us: this.#nowUs, seed: "7" }]);
  }

  // Steps of a test.

  /** Ends the oldest open task of a kind with a result. */
  async complete(kind: AnyKind, result?: unknown): Promise<void> {
    await this.#endTask(kind, { state: "completed", result: textOf(encodePayload(result)) });
  }

  /** Ends the oldest open task of a kind without a result. */
  async fail(
    kind: AnyKind,
    error = "it failed",
    state: "failed" | "dead" | "cancelled" | "expired" = "failed",
  ): Promise<void> {
    await this.#endTask(kind, { state, error });
  }

  async #endTask(kind: AnyKind, fields: Record<string, unknown>): Promise<void> {
    const { operation } = this.#openTask(kind);
    await this.#arrive({ e: "task_ended", operation, ...fields });
  }

  #openTask(kind: AnyKind): OpenTask {
    const name = kindName(kind);
    for (const task of this.tasks.values()) {
      if (task.kind === name) return task;
    }
    const open = [...this.tasks.values()].map((task) => String(task.kind)).join(", ") || "none";
    throw new OnwardError(`no open task of the kind \`${name}\`; open: ${open}`);
  }

  /** Sends a signal. */
  async signal(name: string, payload?: unknown): Promise<void> {
    await this.#arrive({ e: "signal", name, payload: textOf(encodePayload(payload)) });
  }

  /** Requests cancellation. */
  async cancel(): Promise<void> {
    await this.#arrive({ e: "cancel_requested" });
  }

  /** Moves the clock, and fires each timer at its time. */
  async advance(ms: number): Promise<void> {
    const until = this.#nowUs + Math.round(ms * 1_000);
    while (this.state === "waiting") {
      const [next] = [...this.timers].sort(([a, at], [b, bt]) => at - bt || a - b);
      if (next === undefined || next[1] > until) break;
      this.#nowUs = Math.max(this.#nowUs, next[1]);
      await this.#arrive({ e: "timer_fired", operation: next[0] });
    }
    this.#nowUs = until;
  }

  // The state of the orchestration.

  /** The state of the orchestration. */
  get state(): "waiting" | "completed" | "failed" | "cancelled" {
    switch (this.#end.do) {
      case "complete":
        return "completed";
      case "fail":
        return "failed";
      case "cancelled":
        return "cancelled";
      default:
        return "waiting";
    }
  }

  /** The result as JSON. Throws if the code has none. */
  get result(): unknown {
    if (this.state !== "completed") {
      throw new OnwardError(`the orchestration is ${this.state}: ${this.error || this.waits.join(", ")}`);
    }
    return decodeJson(dataOf(this.#end.result));
  }

  /** The error of a failed orchestration; empty if it has not failed. */
  get error(): string {
    return String(this.#end.error ?? "");
  }

  /** Returns the payload of the oldest open task of a kind, as JSON. */
  payloadOf(kind: AnyKind): unknown {
    return decodeJson(dataOf(this.#openTask(kind).data));
  }

  // Turns.

  async #arrive(event: TurnEvent): Promise<void> {
    if (this.state !== "waiting") throw new OnwardError(`the orchestration is ${this.state} already`);
    await this.#turn([{ e: "turn", at_us: this.#nowUs }, event]);
  }

  async #turn(arrivals: TurnEvent[]): Promise<void> {
    const replay = this.#code.begin(this.#payload, { taskId: "1", logger: this.#logger });
    const reply = await replay.run([...this.history, ...arrivals], this.history.length);
    for (const [index, arrival] of arrivals.slice(0, reply.read).entries()) {
      this.history.push(arrival);
      this.#close(arrival.operation);
      for (const decision of reply.decisions) {
        if (decision.after === index) this.#record(decision);
      }
    }
    this.#end = reply.end;
    this.waits = reply.waits;
    if (reply.end.do !== "wait") await checkEnd(replay);
    if (reply.end.do === "continue_as_new") await this.#continue(reply.end);
  }

  #close(operation: unknown): void {
    this.tasks.delete(operation as number);
    this.timers.delete(operation as number);
  }

  #record(decision: DecisionAfter): void {
    const { operation, kind, until_us } = decision;
    switch (decision.do) {
      case "task":
        this.tasks.set(operation, decision);
        this.history.push({ e: "task_submitted", operation, kind });
        break;
      case "timer":
        this.timers.set(operation, until_us as number);
        this.history.push({ e: "timer_started", operation, until_us });
        break;
      case "cancel":
        this.#close(operation);
        this.history.push({ e: "operation_cancelled", operation });
        break;
    }
  }

  async #continue(end: TurnReply["end"]): Promise<void> {
    this.#payload = dataOf(end.payload);
    this.generation += 1;
    this.tasks.clear();
    this.timers.clear();
    const signals = (end.signals ?? []) as Record<string, unknown>[];
    await this.#begin(signals.map((signal) => ({ e: "signal_carried", ...signal })));
  }
}

/** Throws if the code has ended and left something that it should have awaited. */
async function checkEnd(replay: Replay): Promise<void> {
  const [forgotten] = replay.forgotten;
  if (forgotten !== undefined) {
    const what = forgotten.kind === null ? "a timer" : `the task \`${forgotten.kind}\``;
    throw new OnwardError(
      `the code has never awaited operation ${forgotten.number}, ${what}, which its end cancels;` +
        " await it, or cancel it by `cancel()`",
    );
  }
  // Node.js reports rejections when the microtasks of the turn have ended.
  await runOutside(() => new Promise((resolve) => realImmediate(resolve)));
  if (replay.unhandled.length > 0) {
    throw new OnwardError(
      "a promise of the code was rejected, and the code has never awaited it; await each async function",
      { cause: replay.unhandled[0] },
    );
  }
}

/** A recorded history, as `onward orchestration export 1 --output FILE.json` writes it. */
export interface RecordedHistory {
  kind: string;
  /** The payload in base64. */
  payload: string;
  events: readonly unknown[];
}

/**
 * Replays a recorded history with the code of a worker: whether new code continues what old code
 * began. `history` is the path of its file, or its content.
 *
 * Rejects with Nondeterminism where the code differs from it.
 */
export async function checkHistory<State>(
  worker: Worker<State>,
  history: string | RecordedHistory,
): Promise<void> {
  const { kind, payload, events } =
    typeof history === "string" ? (JSON.parse(await readFile(history, "utf8")) as RecordedHistory) : history;
  const code = worker.orchestrationOf(kind);
  const replay = code.begin(dataOf(payload), { taskId: "1", logger: standardError });
  await replay.run(checkEvents(events), events.length);
}
