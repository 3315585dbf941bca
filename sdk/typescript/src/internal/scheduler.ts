/** The scheduler: which received task starts when. */

import type { Context } from "../context.js";
import type { Entry } from "./registry.js";

/**
 * Starts tasks in their order while slots are free. `run` starts one and returns without waiting.
 */
export class Scheduler {
  readonly #slots: number;
  readonly #run: (context: Context, entry: Entry) => void;
  readonly #ready = new Map<Context, Entry>();
  /** Tasks whose kind is at its limit, in their order. */
  readonly #parked = new Map<Entry, Set<Context>>();
  /** Tasks that were parked and may start now. They come before those that are ready. */
  readonly #resumed = new Map<Context, Entry>();
  #running = 0;
  #starting = false;

  constructor(slots: number, run: (context: Context, entry: Entry) => void) {
    this.#slots = slots;
    this.#run = run;
  }

  /** True if handlers are running. */
  get isBusy(): boolean {
    return this.#running > 0;
  }

  /** Takes a received task. `start` starts it, or lets it wait for a slot. */
  add(context: Context, entry: Entry): void {
    this.#ready.set(context, entry);
  }

  /** Returns the tasks that have not started, and forgets them. */
  release(): Context[] {
    const waiting = [
      ...this.#resumed.keys(),
      ...this.#ready.keys(),
      ...[...this.#parked.values()].flatMap((parked) => [...parked]),
    ];
    this.#resumed.clear();
    this.#ready.clear();
    this.#parked.clear();
    return waiting;
  }

  /** Forgets a task that has not started. Returns whether there was one. */
  discard(context: Context): boolean {
    if (this.#ready.delete(context) || this.#resumed.delete(context)) return true;
    for (const parked of this.#parked.values()) {
      if (parked.delete(context)) return true;
    }
    return false;
  }

  /** Frees the slot of a task and starts the next. */
  finished(entry: Entry): void {
    this.#running -= 1;
    entry.running -= 1;
    const parked = this.#parked.get(entry);
    const [next] = parked ?? [];
    if (parked !== undefined && next !== undefined) {
      parked.delete(next);
      this.#resumed.set(next, entry);
    }
    this.start();
  }

  /** Starts tasks until the slots are used. */
  start(): void {
    // A handler that does not wait ends within `#begin`, which calls `start` again: one loop is
    // enough.
    if (this.#starting) return;
    this.#starting = true;
    try {
      while (this.#running < this.#slots && this.#startOne()) {}
    } finally {
      this.#starting = false;
    }
  }

  /** Starts the first task, or parks it. Returns whether there was one. */
  #startOne(): boolean {
    const queue = this.#resumed.size > 0 ? this.#resumed : this.#ready;
    const [first] = queue;
    if (first === undefined) return false;
    const [context, entry] = first;
    queue.delete(context);
    if (entry.options.limit !== undefined && entry.running >= entry.options.limit) {
      this.#park(context, entry);
    } else {
      this.#begin(context, entry);
    }
    return true;
  }

  #park(context: Context, entry: Entry): void {
    const parked = this.#parked.get(entry);
    if (parked === undefined) this.#parked.set(entry, new Set([context]));
    else parked.add(context);
  }

  #begin(context: Context, entry: Entry): void {
    this.#running += 1;
    entry.running += 1;
    this.#run(context, entry);
  }
}
