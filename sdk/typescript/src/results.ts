/** Results of other tasks, as a handler reads them. */

import { PayloadError } from "./errors.js";
import { decodeJson, readPayload, validateSync } from "./internal/payload.js";
import type { OutputOf, Schema } from "./schema.js";
import { bytes } from "./schema.js";

/** The state of a task. */
export type TaskState =
  | "blocked"
  | "scheduled"
  | "waiting"
  | "running"
  | "completed"
  | "failed"
  | "dead"
  | "cancelled"
  | "expired";

/** A task's state, and its result or error if it has ended. */
export class TaskResult {
  constructor(
    readonly task: string,
    readonly state: TaskState,
    /** The result in bytes, or null without one. */
    readonly payload: Uint8Array | null,
    /** The text of the error, or null without one. */
    readonly error: string | null,
  ) {}

  /** True if the task is completed. */
  get isCompleted(): boolean {
    return this.state === "completed";
  }

  /**
   * Returns the result as JSON, or as the schema returns it.
   *
   * Throws PayloadError if the task has no result, or one that the schema rejects.
   */
  value<S extends Schema<unknown, unknown> | undefined = undefined>(schema?: S): OutputOf<S> {
    if (this.payload === null) {
      const reason = this.error === null ? "" : `: ${this.error}`;
      throw new PayloadError(`task ${this.task} has no result; it is ${this.state}${reason}`);
    }
    const value =
      schema === bytes || schema === undefined
        ? readPayload(this.payload, schema)
        : validateSync(decodeJson(this.payload), schema, `the result of task ${this.task}`);
    return value as OutputOf<S>;
  }
}

/** A child of the task. */
export class Child extends TaskResult {
  constructor(
    task: string,
    state: TaskState,
    payload: Uint8Array | null,
    error: string | null,
    readonly kind: string,
  ) {
    super(task, state, payload, error);
  }
}

/** The payload of a workflow's step without `with`: the input of the run, and earlier results. */
export class Step<Input = unknown> {
  /** The input of the run. */
  readonly input: Input;
  /** The results of all ancestors, by the names of their steps. */
  readonly results: Readonly<Record<string, unknown>>;

  constructor(
    /** The payload as JSON. */
    readonly payload: unknown,
    schema?: Schema<unknown, Input>,
  ) {
    const fields =
      typeof payload === "object" && payload !== null ? (payload as Record<string, unknown>) : {};
    const input = "input" in fields ? fields.input : payload;
    this.input = (
      schema === undefined ? input : validateSync(input, schema, "the input of the run")
    ) as Input;
    const results = fields.results;
    this.results =
      typeof results === "object" && results !== null ? (results as Record<string, unknown>) : {};
  }

  /**
   * Returns the result of an earlier step by its name, as JSON or as the schema returns it.
   *
   * Throws RangeError with the known names if no ancestor has this name.
   */
  result<S extends Schema<unknown, unknown> | undefined = undefined>(name: string, schema?: S): OutputOf<S> {
    if (!Object.hasOwn(this.results, name)) {
      const known = Object.keys(this.results).sort().join(", ") || "none";
      throw new RangeError(`no result of a step \`${name}\`; results of its ancestors: ${known}`);
    }
    const value = this.results[name];
    return (
      schema === undefined ? value : validateSync(value, schema, `the result of \`${name}\``)
    ) as OutputOf<S>;
  }
}
