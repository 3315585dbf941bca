/**
 * Workers and clients for Onward: durable tasks, workflows and their handlers.
 *
 * ```typescript
 * import { Worker } from "onward";
 *
 * const app = new Worker();
 * app.handler("greet", (name) => `Hello, ${name}`);
 * await app.run();
 * ```
 *
 * Start it by `onward work --app "node app.js"`.
 */

export type { Batch } from "./batch.js";
export type {
  ClientOptions,
  CreateOptions,
  ResultOf,
  StartOptions,
  TaskLike,
  WaitOptions,
  WatchOptions,
} from "./client.js";
export { Client } from "./client.js";
export type { ProblemFields } from "./client-errors.js";
export {
  Conflict,
  Denied,
  Invalid,
  NotFound,
  Overloaded,
  Problem,
  TaskFailed,
  WaitTimeout,
} from "./client-errors.js";
export type { Event, Orchestration, Run, RunStep } from "./client-types.js";
export { TaskOutcome } from "./client-types.js";
export type { Context, Progress } from "./context.js";
export type { RetryLaterOptions, StopReason } from "./errors.js";
export {
  Cancelled,
  Fail,
  Nondeterminism,
  NotDeterministic,
  OnwardError,
  PayloadError,
  Refused,
  RetryLater,
  SignalTimeout,
  Unavailable,
} from "./errors.js";
export type { Ending } from "./internal/ends.js";
export type { LogFields, Logger } from "./logger.js";
export type {
  FirstOf,
  OperationOptions,
  OperationResult,
  OrchestrationContext,
  SignalOptions,
  ValuesOf,
} from "./orchestration/context.js";
export type { Future, Part } from "./orchestration/futures.js";
export type { ContinueAsNew, Operation } from "./orchestration/replay.js";
export type { Child, Step, TaskResult, TaskState } from "./results.js";
export type { InputOf, Issue, MaybeSchema, OutputOf, Schema, Validation } from "./schema.js";
export { bytes } from "./schema.js";
export type {
  AnyKind,
  Kind,
  KindOptions,
  NewTask,
  PayloadOf,
  Retry,
  SubmitOptions,
  Submitted,
} from "./tasks.js";
export { defineKind } from "./tasks.js";
export { VERSION } from "./version.js";
export type {
  Awaitable,
  Call,
  HandlerOptions,
  Middleware,
  Orchestrate,
  OrchestrationOptions,
  WorkerOptions,
} from "./worker.js";
export { Handler, Worker } from "./worker.js";
