/** Replays the code of an orchestration over its history, and collects what it decides after that. */

import { TaskFailed } from "../client-errors.js";
import { Cancelled, Fail, NotDeterministic, PayloadError, SignalTimeout } from "../errors.js";
import { encodePayload } from "../internal/payload.js";
import { difference, isSame } from "./difference.js";
import { Branch, Future } from "./futures.js";
import { Guarded } from "./guard.js";
import { DrawnNumbers } from "./random.js";
import { runAs } from "./scope.js";
import type { Decision, DecisionAfter, TurnEvent, TurnReply } from "./turn.js";
import { dataOf, isCommand, textOf } from "./turn.js";

/** Reads a result or a signal. Throws PayloadError if it has another type. */
export type Decode<T> = (data: Uint8Array) => T;

/** The result of code that begins again. */
export class ContinueAsNew {
  /** @internal */
  constructor(
    /** @internal */
    readonly payload: Uint8Array,
  ) {}
}

/** A task or a timer, with the number under which the history has it. */
export class Operation<T> extends Future<T> {
  constructor(
    readonly replay: Replay,
    readonly number: number,
    /** The kind of a task; null for a timer. */
    readonly kind: string | null,
    readonly decode: Decode<T>,
  ) {
    super();
  }

  /** Gives the operation up: a task is cancelled, a timer forgotten. */
  override cancel(): void {
    if (!this.isDone) this.replay.cancelOperation(this);
    super.cancel();
  }
}

/** The wait for a signal of a name. */
export class SignalWait<T> extends Future<T> {
  payload: Uint8Array | null = null;
  isTaken = false;

  constructor(
    readonly replay: Replay,
    readonly name: string,
    readonly decode: Decode<T>,
  ) {
    super();
  }

  /** Ends the wait with a signal. */
  deliver(payload: Uint8Array): void {
    this.payload = payload;
    this.replay.delivered(this);
    this.complete(decoded(this.decode, payload, `the signal \`${this.name}\``));
  }

  override taken(): void {
    this.isTaken = true;
  }

  /** Gives the wait up. A signal that it has got, and that nothing has read, goes to the next one. */
  override cancel(): void {
    if (!this.isDone) {
      this.replay.forgetWait(this);
    } else if (this.payload !== null && !this.isTaken) {
      this.isTaken = true;
      this.replay.returnSignal(this.name, this.payload);
    }
    super.cancel();
  }
}

/** Returns the end of a future whose value is read from data, with an error that names `what`. */
function decoded<T>(decode: Decode<T>, data: Uint8Array, what: string): { value: T } | { error: unknown } {
  try {
    return { value: decode(data) };
  } catch (error) {
    if (!(error instanceof PayloadError)) throw error;
    return { error: new Fail(`${what}: ${error.message}`, { cause: error }) };
  }
}

/** The end of the code. */
type End = { value: unknown } | { error: unknown };

/** The code of one orchestration, at a position of its history. */
export class Replay {
  /** The time of the turn, in microseconds since 1970. */
  nowUs = 0;
  isReplaying = true;
  cancelRequested = false;
  /** The number of events of the history, with those of the last turn. */
  length = 0;
  /** The reasons of promises of the code that were rejected and that nothing awaited. */
  readonly unhandled: unknown[] = [];
  /** The operations that were open at the end of the code, and that it has never awaited. */
  readonly forgotten: Operation<unknown>[] = [];
  readonly #start: () => Promise<unknown>;
  /** The guard of the code. */
  readonly guarded = new Guarded();
  #numbers: DrawnNumbers = new DrawnNumbers(0n);
  #main: Branch<unknown> | null = null;
  #end: End | null = null;
  #count = 0;
  readonly #open = new Map<number, Operation<unknown>>();
  #commands: Decision[] = [];
  readonly #signals = new Map<string, Uint8Array[]>();
  readonly #waiting = new Map<string, SignalWait<unknown>[]>();
  #decisions: DecisionAfter[] = [];
  #delivered: SignalWait<unknown>[] = [];
  #continued: ContinueAsNew | null = null;

  constructor(start: () => Promise<unknown>) {
    this.#start = start;
  }

  // Calls of the context of the code.

  /** Submits a task, or starts another orchestration. */
  submit<T>(fields: Record<string, unknown>, payload: Uint8Array, decode: Decode<T>): Operation<T> {
    const kind = String(fields.kind);
    const operation = this.#begin(kind, decode);
    this.#commands.push({ do: "task", operation: operation.number, ...fields, data: textOf(payload) });
    return operation;
  }

  /** Waits until a time. */
  timer(untilUs: number): Operation<void> {
    const operation = this.#begin<void>(null, () => undefined);
    this.#commands.push({ do: "timer", operation: operation.number, until_us: untilUs });
    return operation;
  }

  #begin<T>(kind: string | null, decode: Decode<T>): Operation<T> {
    this.guarded.check();
    this.#count += 1;
    const operation = new Operation<T>(this, this.#count, kind, decode);
    this.#open.set(this.#count, operation as Operation<unknown>);
    return operation;
  }

  /** Records that the code waits no longer for an operation. */
  cancelOperation({ number }: { number: number }): void {
    if (this.#open.delete(number)) this.#commands.push({ do: "cancel", operation: number });
  }

  /** Waits for a signal. One that is here already ends the wait. */
  waitSignal<T>(name: string, decode: Decode<T>): SignalWait<T> {
    this.guarded.check();
    const wait = new SignalWait<T>(this, name, decode);
    const first = this.#signals.get(name)?.shift();
    if (first === undefined) listOf(this.#waiting, name).push(wait as SignalWait<unknown>);
    else wait.deliver(first);
    return wait;
  }

  /** Notes that a wait has its signal, which the code may not have read. */
  delivered(wait: SignalWait<unknown>): void {
    this.#delivered.push(wait);
  }

  /** Forgets a wait for a signal. */
  forgetWait(wait: { name: string }): void {
    const waiting = listOf(this.#waiting, wait.name);
    waiting.splice(waiting.indexOf(wait as SignalWait<unknown>), 1);
  }

  /** Gives a signal to the next wait, or keeps it as the next one. */
  returnSignal(name: string, payload: Uint8Array): void {
    const next = this.#waiting.get(name)?.shift();
    if (next === undefined) listOf(this.#signals, name).unshift(payload);
    else next.deliver(payload);
  }

  /** Returns 64 random bits, the same in every replay. */
  draw(): bigint {
    this.guarded.check();
    return this.#numbers.draw();
  }

  /** Returns what the code returns to begin again. */
  continueAsNew(payload: Uint8Array): ContinueAsNew {
    this.#continued = new ContinueAsNew(payload);
    return this.#continued;
  }

  // The turn.

  /** The state of the code: whether it has ended. */
  get hasEnded(): boolean {
    return this.#end !== null;
  }

  /**
   * Replays the events before the position and reads those after it.
   *
   * Rejects with Nondeterminism if the code differs from its history, and with what the code throws
   * if it is a fault that a correction of the code can mend.
   */
  async run(events: readonly TurnEvent[], position: number): Promise<TurnReply> {
    return await this.guarded.run(async () => {
      for (const [place, event] of events.slice(0, position).entries()) await this.#replayOne(place, event);
      this.#checkHistoryEnd(position);
      this.length = position;
      return await this.#read(events.slice(position));
    });
  }

  /** Reads the new events of another turn, and rejects with what `run` rejects with. */
  async proceed(arrivals: readonly TurnEvent[]): Promise<TurnReply> {
    this.#delivered = this.#delivered.filter(({ isTaken }) => !isTaken);
    return await this.guarded.run(() => this.#read(arrivals));
  }

  /** Throws Nondeterminism if the code has gone beyond its history. */
  #checkHistoryEnd(position: number): void {
    if (this.#commands.length > 0) throw this.#difference(position, null);
    this.isReplaying = false;
  }

  async #read(arrivals: readonly TurnEvent[]): Promise<TurnReply> {
    this.#decisions = [];
    let read = 0;
    for (const event of arrivals) {
      if (this.hasEnded) break;
      if (this.#accepts(event)) {
        await this.#feed(event);
        this.length += 1 + this.#commands.length;
        this.#decisions.push(...this.#commands.map((command) => ({ after: read, ...command })));
        this.#commands = [];
      }
      read += 1;
    }
    return this.#reply(read);
  }

  async #replayOne(place: number, event: TurnEvent): Promise<void> {
    if (isCommand(event)) {
      const command = this.#commands[0];
      if (command === undefined || !isSame(command, event)) throw this.#difference(place, event);
      this.#commands.shift();
      return;
    }
    const hasEnded = this.hasEnded && event.e !== "turn";
    if (this.#commands.length > 0 || hasEnded || !this.#accepts(event)) throw this.#difference(place, event);
    await this.#feed(event);
  }

  #difference(place: number, event: TurnEvent | null): Error {
    return difference(place, event, this.#commands[0], this.#endText());
  }

  #endText(): string | null {
    if (this.#end === null) return null;
    if (!("error" in this.#end)) return "its end (it returned)";
    const { error } = this.#end;
    return `its end (it threw ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)})`;
  }

  #accepts(event: TurnEvent): boolean {
    if (event.e !== "task_ended" && event.e !== "timer_fired") return true;
    const operation = this.#open.get(event.operation as number);
    return operation !== undefined && (operation.kind === null) === (event.e === "timer_fired");
  }

  /** Gives an event to the code, and lets it run until it waits. */
  async #feed(event: TurnEvent): Promise<void> {
    if (!this.#take(event)) return;
    await this.guarded.settle();
    if (!this.hasEnded) return;
    for (const operation of [...this.#open.values()]) {
      if (!operation.isAwaited) this.forgotten.push(operation);
      this.cancelOperation(operation);
    }
  }

  /** Takes an event. Returns whether the code runs then. */
  #take(event: TurnEvent): boolean {
    switch (event.e) {
      case "started":
        this.#startCode(event);
        return true;
      case "turn":
        this.nowUs = event.at_us as number;
        return false;
      case "task_ended":
        this.#endTask(this.#takeOpen(event), event);
        return true;
      case "timer_fired":
        this.#takeOpen(event).complete({ value: undefined });
        return true;
      case "signal":
        this.#receive(event);
        return true;
      case "signal_carried":
        this.#receive(event);
        return false;
      case "cancel_requested":
        this.cancelRequested = true;
        this.#main?.cancel();
        return true;
      default:
        return false;
    }
  }

  #startCode(event: TurnEvent): void {
    this.nowUs = event.at_us as number;
    this.#numbers = new DrawnNumbers(BigInt(event.seed as string));
    runAs(this, () => {
      this.#main = Branch.begin(() => this.#start());
    });
    this.#main?.onDone((end) => {
      this.#end = end;
    });
  }

  #takeOpen(event: TurnEvent): Operation<unknown> {
    const number = event.operation as number;
    const operation = this.#open.get(number);
    if (operation === undefined) throw new Error(`operation ${number} is not open`);
    this.#open.delete(number);
    return operation;
  }

  #receive(event: TurnEvent): void {
    const [name, payload] = [String(event.name), dataOf(event.payload)];
    const wait = this.#waiting.get(name)?.shift();
    if (wait === undefined) listOf(this.#signals, name).push(payload);
    else wait.deliver(payload);
  }

  #endTask(operation: Operation<unknown>, event: TurnEvent): void {
    const kind = operation.kind ?? "";
    if (event.state === "completed") {
      operation.complete(
        decoded(operation.decode, dataOf(event.result), `the result of the task \`${kind}\``),
      );
      return;
    }
    const isTaken = event.state === "not_started";
    const text = isTaken
      ? `task ${String(event.existing)} has its key`
      : String(event.error ?? "no error was reported");
    operation.complete({
      error: new TaskFailed(null, event.state as TaskFailed["state"], text, kind),
    });
  }

  #reply(read: number): TurnReply {
    const decisions = this.#decisions;
    if (this.#end !== null) return { read, decisions, waits: [], end: this.#endFields(this.#end) };
    const waits = [...this.#waiting].filter(([, waiting]) => waiting.length > 0).map(([name]) => name);
    if (this.#main !== null && this.#open.size === 0 && waits.length === 0) {
      throw new NotDeterministic(
        "the orchestration awaits something that no event of its history ends;" +
          " await the operations of its context, and move other work into a task",
      );
    }
    return { read, decisions, waits: waits.sort(), end: { do: "wait" } };
  }

  #endFields(end: End): TurnReply["end"] {
    if ("error" in end) return this.#errorFields(end.error);
    const { value } = end;
    if (value instanceof ContinueAsNew) return this.#continueFields(value.payload);
    if (this.#continued !== null) {
      throw new NotDeterministic(
        "the orchestration called `ctx.continueAsNew` and did not return its value;" +
          " write `return ctx.continueAsNew(…)`",
      );
    }
    return { do: "complete", result: value === undefined ? "" : textOf(encodePayload(value)) };
  }

  #errorFields(error: unknown): TurnReply["end"] {
    if (error instanceof Cancelled && this.cancelRequested) return { do: "cancelled" };
    if (isFailure(error)) return { do: "fail", error: `${error.name}: ${error.message}` };
    throw error;
  }

  #continueFields(payload: Uint8Array): TurnReply["end"] {
    for (const wait of [...this.#delivered].reverse()) {
      if (!wait.isTaken && wait.payload !== null) listOf(this.#signals, wait.name).unshift(wait.payload);
    }
    const names = [...this.#signals.keys()].sort();
    const signals = names.flatMap((name) =>
      listOf(this.#signals, name).map((signal) => ({ name, payload: textOf(signal) })),
    );
    const end: TurnReply["end"] = { do: "continue_as_new", payload: textOf(payload) };
    if (signals.length > 0) end.signals = signals;
    return end;
  }
}

/** Returns whether an error fails the orchestration. Every other one is a fault of its code. */
function isFailure(error: unknown): error is Error {
  return (
    error instanceof Fail ||
    error instanceof TaskFailed ||
    error instanceof SignalTimeout ||
    error instanceof Cancelled
  );
}

function listOf<T>(lists: Map<string, T[]>, name: string): T[] {
  let list = lists.get(name);
  if (list === undefined) {
    list = [];
    lists.set(name, list);
  }
  return list;
}
