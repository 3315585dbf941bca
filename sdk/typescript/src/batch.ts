/** Batches: handlers that work through a cursor of positions and continue after a crash. */

import type { Context } from "./context.js";
import { Fail } from "./errors.js";
import { isObject } from "./internal/messages.js";
import { decodeJson } from "./internal/payload.js";

/**
 * The positions of a task's cursor that are not done yet: `for await (const position of batch)`.
 *
 * The payload is `{"from": 0, "to": 1000}`, or an object with such a `cursor`; `to` is excluded.
 * After every `every` positions, the position and `partial` become the task's checkpoint, so that
 * the next attempt continues there. The loop throws Cancelled when the attempt should stop.
 */
export class Batch<Partial = unknown> implements AsyncIterable<number> {
  /** The payload as JSON. */
  readonly payload: Readonly<Record<string, unknown>>;
  /** The first position of the cursor. */
  readonly start: number;
  /** The position behind the last one. */
  readonly end: number;
  /** The first position that is not done. */
  position: number;
  /** The result so far: any JSON value. It is the result of a handler that returns nothing. */
  partial: Partial;
  readonly #context: Context;
  readonly #every: number;

  /** @internal */
  constructor(context: Context, every: number, initial: Partial) {
    const payload = decodeJson(context.payload);
    if (!isObject(payload)) {
      throw new Fail("the payload of a batch must be an object with `from` and `to`");
    }
    this.payload = payload;
    [this.start, this.end] = bounds(context, payload.cursor ?? payload);
    this.position = this.start;
    // Each attempt has its own copy, because handlers change it in place.
    this.partial = structuredClone(initial);
    this.#context = context;
    this.#every = every;
    const saved = context.lastCheckpoint();
    if (isObject(saved) && Number.isSafeInteger(saved.position)) {
      this.position = Math.min(Math.max(saved.position as number, this.start), this.end);
      this.partial = saved.partial as Partial;
    }
  }

  /** The number of positions that are not done. */
  get length(): number {
    return this.end - this.position;
  }

  /** Returns the positions. A position is done when the next one is asked for. */
  async *[Symbol.asyncIterator](): AsyncGenerator<number, void, void> {
    while (this.position < this.end) {
      this.#context.throwIfCancelled();
      yield this.position;
      this.position += 1;
      const done = this.position - this.start;
      this.#context.progress(done / (this.end - this.start));
      if (done % this.#every === 0 && this.position < this.end) {
        await this.#context.checkpoint({ position: this.position, partial: this.partial });
      }
    }
  }
}

function bounds(context: Context, cursor: unknown): [number, number] {
  const { from, to } = isObject(cursor) ? cursor : { from: null, to: null };
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || (to as number) < (from as number)) {
    const shown = (JSON.stringify(cursor) ?? "absent").slice(0, 80);
    throw new Fail(
      `the cursor of task ${context.taskId} is ${shown}; it must be` +
        ' {"from": integer, "to": integer} with `to` not before `from`',
    );
  }
  return [from as number, to as number];
}
