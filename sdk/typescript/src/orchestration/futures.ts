/** Futures and branches of an orchestration: what its code awaits. */

import { Cancelled } from "../errors.js";
import { currentBranch, runIn } from "./scope.js";

/** A value that comes later, or a function that begins something and returns it. */
export type Part<T> = PromiseLike<T> | (() => PromiseLike<T>);

/** The end of a future. */
type Settled<T> = { readonly value: T } | { readonly error: unknown };

/** A function that gets the end of a future. As a method, it lets a future of a type stand for one of a wider type. */
type Callback<T> = { call(end: Settled<T>): void }["call"];

/**
 * A value that comes later. The code of an orchestration awaits it as it awaits a promise.
 *
 * It makes no promise before it is awaited, so that an error which the code never awaits is not an
 * unhandled rejection.
 */
export class Future<T> implements Promise<T> {
  readonly [Symbol.toStringTag] = "Future";
  /** @internal Whether the code has awaited it. */
  isAwaited = false;
  #end: Settled<T> | null = null;
  #callbacks: Callback<T>[] = [];

  /** True if the value or an error is there. */
  get isDone(): boolean {
    return this.#end !== null;
  }

  // biome-ignore lint/suspicious/noThenProperty: the code awaits futures
  then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isAwaited = true;
    const branch = currentBranch();
    branch?.awaits(this);
    const promise = new Promise<T>((resolve, reject) => {
      this.onDone((end) => {
        branch?.awaitsNoLonger(this);
        if ("error" in end) return reject(end.error);
        this.taken();
        resolve(end.value);
      });
    });
    return promise.then(onValue, onError);
  }

  catch<B = never>(onError?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(null, onError);
  }

  finally(onEnd?: (() => void) | null): Promise<T> {
    return this.then().finally(onEnd);
  }

  /** @internal Calls back when the future is done, at once if it is. */
  onDone(callback: Callback<T>): void {
    if (this.#end === null) this.#callbacks.push(callback);
    else callback(this.#end);
  }

  /** @internal Notes that the code gets the value. */
  taken(): void {}

  /** @internal Ends the future. A second end has no effect. */
  complete(end: Settled<T>): void {
    if (this.#end !== null) return;
    this.#end = end;
    const callbacks = this.#callbacks;
    this.#callbacks = [];
    for (const callback of callbacks) callback(end);
  }

  /** Gives the operation up: what awaits it gets Cancelled. It has no effect on one that is done. */
  cancel(): void {
    this.complete({ error: new Cancelled("cancelled") });
  }
}

/** An async function that runs beside others of the orchestration. */
export class Branch<T> extends Future<T> {
  readonly #awaited = new Set<Future<unknown>>();

  /** Begins a function, which runs until it awaits something. */
  static begin<T>(call: (branch: Branch<T>) => PromiseLike<T>): Branch<T> {
    const branch = new Branch<T>();
    runIn(branch, () => {
      try {
        branch.#follow(call(branch));
      } catch (error) {
        branch.complete({ error });
      }
    });
    return branch;
  }

  #follow(promise: PromiseLike<T>): void {
    promise.then(
      (value) => this.complete({ value }),
      (error: unknown) => this.complete({ error }),
    );
  }

  awaits(future: Future<unknown>): void {
    if (!future.isDone) this.#awaited.add(future);
  }

  awaitsNoLonger(future: Future<unknown>): void {
    this.#awaited.delete(future);
  }

  /** Gives up what the branch awaits, so that it gets Cancelled there and may clean up. */
  override cancel(): void {
    if (this.isDone) return;
    for (const future of [...this.#awaited]) future.cancel();
  }
}

/** Returns the future of an operation, of a function that begins to run, or of a promise. */
export function futureOf<T>(part: Part<T>): Future<T> {
  if (part instanceof Future) return part as Future<T>;
  return Branch.begin<T>(() => (typeof part === "function" ? part() : part));
}

/** All values in their order. The first error cancels the others. */
export class All<T extends unknown[]> extends Future<T> {
  readonly #parts: Future<unknown>[];

  constructor(parts: readonly Part<unknown>[]) {
    super();
    this.#parts = parts.map((part) => futureOf(part));
    const values: unknown[] = new Array(parts.length);
    let missing = parts.length;
    if (missing === 0) this.complete({ value: [] as unknown as T });
    this.#parts.forEach((part, index) => {
      part.isAwaited = true;
      part.onDone((end) => {
        if (this.isDone) return;
        if ("error" in end) return this.#giveUp(end.error);
        values[index] = end.value;
        missing -= 1;
        if (missing > 0) return;
        for (const one of this.#parts) one.taken();
        this.complete({ value: values as T });
      });
    });
  }

  #giveUp(error: unknown): void {
    this.complete({ error });
    for (const part of this.#parts) {
      if (!part.isDone) part.cancel();
    }
  }

  override cancel(): void {
    if (!this.isDone) this.#giveUp(new Cancelled("cancelled"));
  }
}

/** The first of several futures that ends, with its index. It cancels the others. */
export class First<T> extends Future<T> {
  readonly #parts: Future<unknown>[];

  constructor(parts: readonly Part<unknown>[]) {
    super();
    if (parts.length === 0)
      throw new RangeError("`first` has nothing to wait for; give it at least one operation");
    this.#parts = parts.map((part) => futureOf(part));
    this.#parts.forEach((part, index) => {
      part.isAwaited = true;
      part.onDone((end) => this.#ended(part, index, end));
    });
  }

  #ended(part: Future<unknown>, index: number, end: Settled<unknown>): void {
    if (this.isDone) return;
    if ("error" in end) {
      this.complete(end);
    } else {
      part.taken();
      this.complete({ value: [index, end.value] as T });
    }
    for (const other of this.#parts) {
      if (other !== part) other.cancel();
    }
  }

  override cancel(): void {
    if (this.isDone) return;
    super.cancel();
    for (const part of this.#parts) part.cancel();
  }
}
