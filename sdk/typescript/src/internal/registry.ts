/** Handlers of a worker: how each is called, with its schemas and the middleware around it. */

import type { Context } from "../context.js";
import { Fail } from "../errors.js";
import type { Schema } from "../schema.js";
import type { KindOptions } from "../tasks.js";
import { kindFields } from "../tasks.js";
import { checkName } from "./bounds.js";
import { Ending } from "./ends.js";
import { readPayload, validate } from "./payload.js";

type AnySchema = Schema<unknown, unknown> | undefined;

/** A registered handler. `call` returns the result or a promise of it. */
export interface Entry {
  kind: string;
  call: (context: Context) => unknown;
  options: KindOptions;
  /** The options as `hello` writes them. */
  fields: Record<string, unknown>;
  /** The number of handlers of the kind that run. */
  running: number;
  /** True if the call runs a turn of an orchestration. */
  isOrchestration: boolean;
}

/** A function around every handler. `next` runs the handler and ends with its result. */
export type AnyMiddleware = (context: Context, next: () => Promise<unknown>) => unknown;

/** Returns the entry of a kind. Throws RangeError for an option out of its range. */
export function entryOf(kind: string, options: KindOptions, call: (context: Context) => unknown): Entry {
  return {
    kind: checkName("kind", kind),
    call,
    options,
    fields: kindFields(options),
    running: 0,
    isOrchestration: false,
  };
}

/** Returns the call of a handler that reads its payload and writes its result by schemas. */
export function typedCall(
  input: AnySchema,
  output: AnySchema,
  call: (payload: unknown, context: Context) => unknown,
): (context: Context) => unknown {
  const run = (payload: unknown, context: Context): unknown => checkOutput(output, call(payload, context));
  return (context) => {
    const payload = readPayload(context.payload, input);
    return payload instanceof Promise ? payload.then((value) => run(value, context)) : run(payload, context);
  };
}

/** Returns the result as the schema returns it. Another ending than a result is none. */
function checkOutput(schema: AnySchema, result: unknown): unknown {
  if (schema === undefined) return result;
  const check = (value: unknown) => (value instanceof Ending ? value : validate(value, schema, "the result"));
  return isPromise(result) ? result.then(check) : check(result);
}

/** Returns whether a value can be awaited. */
export function isPromise(value: unknown): value is Promise<unknown> {
  return (
    typeof value === "object" && value !== null && typeof (value as Promise<unknown>).then === "function"
  );
}

/**
 * Returns the choice of a decision as its result. Throws Fail for a choice that it did not list.
 */
export function chosen(kind: string, choice: unknown, allowed: readonly string[]): { chosen: string[] } {
  const names = choice == null ? [] : Array.isArray(choice) ? choice : [choice];
  for (const name of names) {
    if (!allowed.includes(name)) {
      const shown = String(JSON.stringify(name)).slice(0, 80);
      throw new Fail(`the decision \`${kind}\` chose ${shown}; its choices are ${allowed.join(", ")}`);
    }
  }
  return { chosen: names };
}

/**
 * Returns the call of a handler within its middleware; the first one is outermost. A turn of an
 * orchestration has none, because it is replayed.
 */
export function wrap(entry: Entry, middleware: readonly AnyMiddleware[]): (context: Context) => unknown {
  if (entry.isOrchestration) return entry.call;
  return middleware.reduceRight<(context: Context) => unknown>(
    (call, around) => (context) => within(around, call, context),
    entry.call,
  );
}

async function within(
  around: AnyMiddleware,
  call: (context: Context) => unknown,
  context: Context,
): Promise<unknown> {
  let inner: Promise<unknown> | null = null;
  await around(context, () => {
    if (inner !== null) throw new Error("a middleware called `next` twice; it must call it once");
    inner = (async () => call(context))();
    // The error is thrown below too, also where the middleware does not wait for `next`.
    inner.catch(() => {});
    return inner;
  });
  if (inner === null) throw new Error("a middleware did not call `next`; throw an error to end the attempt");
  return inner;
}
