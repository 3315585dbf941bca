/**
 * Runs a handler without a gateway, for tests.
 *
 * ```typescript
 * import { run } from "onward/testing";
 *
 * const outcome = await run(app, "greet", "Ada");
 * assert.equal(outcome.value(), "Hello, Ada");
 * ```
 */

import type { Host, Progress } from "./context.js";
import { Context } from "./context.js";
import type { StopReason } from "./errors.js";
import { OnwardError } from "./errors.js";
import type { End } from "./internal/ends.js";
import { completed, Ending, endedOtherwise, failed, stopped } from "./internal/ends.js";
import type { Header } from "./internal/frames.js";
import { PAYLOAD_BYTES } from "./internal/frames.js";
import type { Reply } from "./internal/messages.js";
import { newTaskMessage } from "./internal/messages.js";
import { decodeJson, encodePayload } from "./internal/payload.js";
import type { Logger } from "./logger.js";
import { standardError } from "./logger.js";
import { TaskResult } from "./results.js";
import type { OutputOf, Schema } from "./schema.js";
import type { AnyKind, PayloadOf } from "./tasks.js";
import { kindName } from "./tasks.js";
import type { Worker } from "./worker.js";

/** The reply to an `ask` of a handler: the fields of the protocol's `reply`, and its payloads. */
export interface Answer {
  fields: Record<string, unknown>;
  payloads?: Uint8Array[];
}

/** Options of a run. */
export interface RunOptions {
  /** The number of the attempt; by default 1. */
  attempt?: number;
  /** The checkpoint of an earlier attempt: a Uint8Array, or it becomes JSON. */
  checkpoint?: unknown;
  headers?: Record<string, string>;
  tags?: Record<string, string>;
  /** The attempt is asked to stop for this reason, after `stopAfterMs` (0). */
  stop?: StopReason;
  stopAfterMs?: number;
  /**
   * Answers the handler's `result`, `children` and `items`; it gets the header of the protocol's
   * `ask`.
   */
  answer?: (ask: Readonly<Record<string, unknown>>) => Answer;
  /** The logger of the context; by default standard error. */
  logger?: Logger;
}

/** A task that a handler spawned or submitted: the protocol's fields, and the payload in bytes. */
export interface RecordedTask {
  fields: Readonly<Record<string, unknown>>;
  payload: Uint8Array;
}

/** The end of an attempt, and what its handler did before. */
export class Outcome {
  /**
   * `ok`, `fail`, `later`, `children`, `move`, `release`, `cancelled`, or `lost` if no end is sent.
   */
  readonly outcome: string;
  /** The fields of the protocol's `end`. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** The result in bytes. */
  readonly payload: Uint8Array | null;

  /** @internal */
  constructor(
    end: End | null,
    /** The error that the handler threw. */
    readonly error: unknown,
    readonly progress: readonly Progress[],
    readonly checkpoints: readonly unknown[],
    readonly spawned: readonly RecordedTask[],
    readonly submitted: readonly RecordedTask[],
  ) {
    this.outcome = end === null ? "lost" : String(end.entry.outcome);
    this.fields = end?.entry ?? {};
    this.payload = end?.references.find(({ name }) => name === "payload")?.payload ?? null;
  }

  /**
   * Returns the result as JSON, or as the schema returns it.
   *
   * Throws what the handler threw, or an error if it ended without a result.
   */
  value<S extends Schema<unknown, unknown> | undefined = undefined>(schema?: S): OutputOf<S> {
    if (this.error !== undefined) throw this.error;
    if (this.outcome !== "ok")
      throw new OnwardError(`the attempt ended with \`${this.outcome}\`, not with a result`);
    return new TaskResult("1", "completed", this.payload, null).value(schema);
  }
}

/** The host of one attempt: it records, and answers as a gateway does. */
class TestHost implements Host {
  readonly maxPayload = PAYLOAD_BYTES;
  readonly features = new Set(["ask", "headers", "submit"]);
  readonly progress: Progress[] = [];
  readonly checkpoints: unknown[] = [];
  readonly submitted: RecordedTask[] = [];

  constructor(
    readonly state: unknown,
    readonly logger: Logger,
    readonly answer: RunOptions["answer"],
  ) {}

  touch(context: Context): void {
    if (context.progressFields !== null) this.progress.push({ ...context.progressFields });
  }

  async saveCheckpoint(_: Context, payload: Uint8Array): Promise<void> {
    this.checkpoints.push(decodeJson(payload));
  }

  async request(header: Header, payloads: Uint8Array[]): Promise<Reply> {
    if (header.t === "submit") return this.#submit(header, payloads);
    if (this.answer === undefined) {
      throw new OnwardError(`the handler asks for \`${header.what}\`; give \`answer\` to the test's \`run\``);
    }
    const { fields, payloads: answered = [] } = this.answer(header);
    return { t: "reply", request: 0, header: { t: "reply", ...fields }, payloads: answered };
  }

  #submit(header: Header, payloads: Uint8Array[]): Reply {
    const tasks = (header.tasks as Record<string, unknown>[]).map((fields) => {
      const payload = payloads[fields.payload as number] ?? new Uint8Array();
      this.submitted.push({ fields, payload });
      return { task: String(this.submitted.length), result: "inserted" };
    });
    return { t: "reply", request: 0, header: { t: "reply", tasks }, payloads: [] };
  }
}

/**
 * Runs the handler of a kind once, with the worker's middleware, and returns how it ended.
 *
 * `payload` is a Uint8Array, or it becomes JSON. Throws RangeError if the kind has no handler.
 */
export async function run<State, K extends AnyKind>(
  worker: Worker<State>,
  kind: K,
  payload?: PayloadOf<K>,
  options: RunOptions = {},
): Promise<Outcome> {
  const entry = worker.entryOf(kindName(kind));
  const host = new TestHost(worker.state, options.logger ?? standardError, options.answer);
  const { attempt = 1, headers = {}, tags = {}, stop, stopAfterMs = 0 } = options;
  const task = newTaskMessage({ task: "1", fence: "1", kind: kindName(kind), attempt, headers, tags });
  if (payload !== undefined) task.payload = encodePayload(payload);
  if (options.checkpoint !== undefined) task.checkpoint = encodePayload(options.checkpoint);
  const context = new Context(task, host);
  const timer = stop === undefined ? undefined : setTimeout(() => context.requestStop(stop), stopAfterMs);
  let end: End | null;
  let error: unknown;
  try {
    end = endOf(context, await entry.call(context));
  } catch (thrown) {
    error = thrown;
    end = context.why === null ? failed(task, thrown) : stopped(task, context.why, thrown);
  } finally {
    clearTimeout(timer);
  }
  return new Outcome(end, error, host.progress, host.checkpoints, context.spawned, host.submitted);
}

function endOf(context: Context, value: unknown): End | null {
  if (context.why === "lost") return null;
  return value instanceof Ending
    ? endedOtherwise(context.message, value, PAYLOAD_BYTES)
    : completed(context.message, value, PAYLOAD_BYTES);
}

export type {
  OpenTask,
  OrchestrationTestOptions,
  RecordedHistory,
} from "./orchestration/test-bed.js";
export { checkHistory, OrchestrationTest } from "./orchestration/test-bed.js";
