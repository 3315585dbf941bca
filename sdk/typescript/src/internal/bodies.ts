/** The bodies of the HTTP API, from values and back. */

import type { Event, Orchestration, Run } from "../client-types.js";
import { isEnd } from "../client-types.js";
import type { TaskState } from "../results.js";
import type { NewTask, Submitted } from "../tasks.js";
import { taskFields } from "../tasks.js";
import { encodePayload } from "./payload.js";

type Fields = Record<string, unknown>;

const TIMES: Readonly<Record<string, string>> = {
  delay_ms: "after",
  ttl_ms: "ttl",
  timeout_ms: "timeout",
  heartbeat_ms: "heartbeat_timeout",
  keep_key_ms: "keep_key_for",
};

/** A response that has a task, or the outcome of a submit. */
export interface TaskBody {
  id: string;
  state?: TaskState;
  outcome?: Submitted["result"];
  error?: string;
}

/**
 * Returns a task as the HTTP API takes it, as JSON.
 *
 * Throws RangeError if a field is out of its range, or is none that the API takes, and PayloadError.
 */
export function taskBody(task: NewTask): string {
  const header = taskFields(task);
  if (header.headers !== undefined) {
    throw new RangeError(
      "a task that a client submits has no headers; use tags, or put them into the payload",
    );
  }
  const body: Fields = {};
  for (const [name, value] of Object.entries(header)) {
    const time = TIMES[name];
    body[time ?? name] = time === undefined ? value : `${value}ms`;
  }
  if (header.retry !== undefined) body.retry = retryBody(header.retry as Fields);
  if (task.payload instanceof Uint8Array) {
    return JSON.stringify({ ...body, payload_base64: Buffer.from(task.payload).toString("base64") });
  }
  if (task.payload === undefined) return JSON.stringify(body);
  return withJson(body, "payload", task.payload);
}

/** Returns an object as JSON, with a value that must have a JSON form. */
export function withJson(fields: Fields, name: string, value: unknown): string {
  const head = JSON.stringify(fields).slice(0, -1);
  return `${head}${head === "{" ? "" : ","}${JSON.stringify(name)}:${jsonOf(value)}}`;
}

/** Returns a value as JSON. Throws PayloadError if it has no JSON form. */
export function jsonOf(value: unknown): string {
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString("base64"));
  return Buffer.from(encodePayload(value)).toString();
}

function retryBody(header: Fields): Fields {
  const times = (...names: string[]) =>
    Object.fromEntries(names.map((name) => [name, `${header[`${name}_ms`]}ms`]));
  const { attempts, backoff } = header;
  if (backoff === "constant") return { attempts, backoff: { constant: { delay: `${header.initial_ms}ms` } } };
  if (backoff === "linear")
    return { attempts, backoff: { linear: times("initial", "increment", "maximum") } };
  const name = backoff === "jitter" ? "exponential_jitter" : "exponential";
  return { attempts, backoff: { [name]: { ...times("initial", "maximum"), factor: header.factor } } };
}

/** Returns the result of a submit or start. */
export function submittedOf(body: TaskBody): Submitted {
  return { task: body.id, result: body.outcome ?? "inserted" };
}

/** Returns the event of a message of a stream, or null if it has none. */
export function eventOf(message: Record<string, string>): Event | null {
  if (message.event === "gap") return { cursor: message.id as string, change: "gap", isEnd: false };
  if (message.data === undefined) return null;
  const event = JSON.parse(message.data);
  return { ...event, isEnd: isEnd(event.change) };
}

/** Returns a run and its steps. */
export function runOf(body: {
  id: string;
  workflow: string;
  phase: string;
  is_ended: boolean;
  steps: (Run["steps"][number] & { depends_on: string[] })[];
}): Run {
  const steps = body.steps.map(({ depends_on, ...step }) => ({ ...step, dependsOn: depends_on }));
  return { task: body.id, workflow: body.workflow, phase: body.phase, isEnded: body.is_ended, steps };
}

interface Content {
  json?: unknown;
  base64?: string;
}

/** Returns the state of an orchestration. */
export function orchestrationOf(body: {
  task: { id: string; state: TaskState };
  paused: boolean;
  awaits: string[];
  status?: Content;
  values: Record<string, Content>;
}): Orchestration {
  const values = Object.entries(body.values).map(([name, content]) => [name, contentOf(content)]);
  return {
    task: body.task.id,
    state: body.task.state,
    paused: body.paused,
    awaits: body.awaits,
    status: contentOf(body.status),
    values: Object.fromEntries(values),
  };
}

function contentOf(content: Content | undefined): unknown {
  if (content === undefined) return null;
  return content.base64 === undefined ? content.json : Buffer.from(content.base64, "base64");
}
