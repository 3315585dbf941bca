/** The values that a client returns. */

import { TaskFailed } from "./client-errors.js";
import type { TaskState } from "./results.js";
import { TaskResult } from "./results.js";
import type { OutputOf, Schema } from "./schema.js";

const ENDED: readonly string[] = ["completed", "failed", "dead", "cancelled", "expired"];

/** Returns whether a state, or the name of a transition, is the end of a task. */
export function isEnd(state: string): boolean {
  return ENDED.includes(state);
}

/** A task's state, and its result or error if it has ended. */
export class TaskOutcome<O = unknown> extends TaskResult {
  readonly #schema: Schema<unknown, O> | undefined;

  constructor(
    task: string,
    state: TaskState,
    payload: Uint8Array | null,
    error: string | null,
    schema?: Schema<unknown, O>,
  ) {
    super(task, state, payload, error);
    this.#schema = schema;
  }

  /** True if the task has ended, in any way. */
  get isEnded(): boolean {
    return isEnd(this.state);
  }

  /**
   * Returns the result: as the schema returns it, as that of the kind does, or as JSON.
   *
   * Throws TaskFailed if the task is not completed, and PayloadError for a result that the schema
   * rejects.
   */
  override value(): O;
  override value<S extends Schema<unknown, unknown> | undefined>(schema: S): OutputOf<S>;
  override value(schema?: Schema<unknown, unknown>): unknown {
    if (this.state !== "completed") throw new TaskFailed(this.task, this.state, this.error);
    return super.value(schema ?? this.#schema);
  }
}

/** One transition of one task. */
export interface Event {
  /** The position behind the event, from which a watch continues. */
  readonly cursor: string;
  /**
   * The transition, such as `submitted`, `started` or `completed`. The change `gap` has no task: the
   * server removed events before they were read.
   */
  readonly change: string;
  readonly task?: string;
  readonly kind?: string;
  readonly queue?: string;
  /** The time, as RFC 3339 writes it. */
  readonly at?: string;
  readonly attempt?: number;
  /** True if the task has ended by this transition. */
  readonly isEnd: boolean;
}

/** A step of a run of a workflow. */
export interface RunStep {
  readonly name: string;
  readonly state: string;
  readonly attempts: number;
  readonly dependsOn: readonly string[];
  readonly reason?: string;
  readonly question?: string;
  readonly task?: string;
}

/** A run of a workflow. Each step follows those that it depends on. */
export interface Run {
  readonly task: string;
  readonly workflow: string;
  readonly phase: string;
  readonly isEnded: boolean;
  readonly steps: readonly RunStep[];
}

/** The state of an orchestration: what it awaits, and what its code published. */
export interface Orchestration {
  readonly task: string;
  readonly state: TaskState;
  readonly paused: boolean;
  readonly awaits: readonly string[];
  readonly status: unknown;
  readonly values: Readonly<Record<string, unknown>>;
}
