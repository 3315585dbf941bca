/** Messages of the gateway: the check of every field, once, before the worker acts on it. */

import type { StopReason } from "../errors.js";
import type { Header } from "./frames.js";
import { PAYLOAD_BYTES, PAYLOADS, ProtocolError } from "./frames.js";

/** An object of a header. */
export type Fields = Readonly<Record<string, unknown>>;

/** Texts by name. */
export type Texts = Readonly<Record<string, string>>;

/** The gateway's acceptance of a worker. */
export interface Welcome {
  t: "welcome";
  session: string;
  leaseMs: number;
  heartbeatMs: number;
  maxPayload: number;
  features: ReadonlySet<string>;
  gateway: string;
}

/** The history of an orchestration's turn. The events from `position` on are new. */
export interface TurnMessage {
  /** JSON lists that follow each other. */
  events: Uint8Array[];
  position: number;
  generation: number;
  /** True if the lists have only the new events. */
  newOnly: boolean;
}

/** One task as the gateway sends it. */
export interface TaskMessage {
  task: string;
  fence: string;
  kind: string;
  attempt: number;
  payload: Uint8Array;
  checkpoint: Uint8Array | null;
  queue: string;
  priority: number;
  deadlineMs: number | null;
  heartbeatMs: number | null;
  group: string | null;
  key: string | null;
  parent: string | null;
  scheduledAt: string | null;
  items: number;
  tags: Texts;
  headers: Texts;
  trace: Texts;
  /** The turn of an orchestration; null for every other task. */
  turn: TurnMessage | null;
}

/** The fate of one end. */
export interface Ack {
  task: string;
  fence: string;
  result: "ok" | "stale" | "refused";
  why: string;
}

/** The answer to a beat. */
export interface Alive {
  t: "alive";
  n: number;
  lost: string[];
  refused: ReadonlyMap<string, string>;
}

/** The request to stop an attempt. */
export interface Stop {
  t: "stop";
  task: string;
  fence: string;
  why: StopReason;
  graceMs: number;
}

/** An `error` of the gateway. */
export interface Problem {
  t: "error";
  code: string;
  text: string;
  remedy: string;
  fatal: boolean;
}

/** The answer to a `submit` or `ask`. */
export interface Reply {
  t: "reply";
  request: number;
  header: Header;
  payloads: Uint8Array[];
}

/** A checked message of the gateway. */
export type Incoming =
  | Welcome
  | { t: "tasks"; tasks: TaskMessage[] }
  | { t: "ack"; ends: Ack[] }
  | Alive
  | Stop
  | { t: "drain"; why: string; withinMs: number }
  | Problem
  | Reply;

const EMPTY = Buffer.alloc(0);
const NO_TEXTS: Texts = Object.freeze({});

function bad(where: string, name: string, value: unknown, rule: string): ProtocolError {
  const shown = (JSON.stringify(value) ?? "absent").slice(0, 80);
  return new ProtocolError("bad_field", `\`${name}\` of \`${where}\` is ${shown}; it must be ${rule}`);
}

/** Returns a text field. Without a default, the field is required and not empty. */
export function text(where: string, fields: Fields, name: string, fallback?: string): string {
  const value = fields[name] ?? fallback;
  if (typeof value !== "string" || (fallback === undefined && value === "")) {
    throw bad(where, name, value, "a string");
  }
  return value;
}

/** Returns a text field, or null if it is absent or empty. */
export function optionalText(where: string, fields: Fields, name: string): string | null {
  return text(where, fields, name, "") || null;
}

/** Returns an integer field of at least `least`. Without a default, the field is required. */
export function integer(where: string, fields: Fields, name: string, least = 0, fallback?: number): number {
  const value = fields[name] ?? fallback;
  if (!Number.isSafeInteger(value) || (value as number) < least) {
    throw bad(where, name, value, `an integer of at least ${least}`);
  }
  return value as number;
}

function optionalInteger(where: string, fields: Fields, name: string, least: number): number | null {
  return fields[name] == null ? null : integer(where, fields, name, least);
}

function texts(where: string, fields: Fields, name: string): Texts {
  const value = fields[name];
  if (value == null) return NO_TEXTS;
  if (!isObject(value) || !Object.values(value).every((item) => typeof item === "string")) {
    throw bad(where, name, value, "an object of strings");
  }
  return value as Texts;
}

function strings(where: string, fields: Fields, name: string): string[] {
  const value = fields[name] ?? [];
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) {
    throw bad(where, name, value, "a list of strings");
  }
  return value;
}

/** Returns whether a value is an object and no list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a list of objects within the bound of entries; empty if it is absent. */
export function entries(where: string, fields: Fields, name: string, least = 0): Fields[] {
  const value = fields[name] ?? [];
  if (!Array.isArray(value) || value.length < least || !value.every(isObject)) {
    throw bad(where, name, value, `a list of at least ${least} objects`);
  }
  if (value.length > PAYLOADS) {
    const found = `\`${name}\` of \`${where}\` has ${value.length} entries, more than ${PAYLOADS}`;
    throw new ProtocolError("too_many", found);
  }
  return value;
}

/** Returns the payload to which an index points, or null without an index. */
export function payloadAt(
  where: string,
  fields: Fields,
  name: string,
  payloads: readonly Uint8Array[],
): Uint8Array | null {
  const index = fields[name];
  if (index == null) return null;
  const payload = typeof index === "number" ? payloads[index] : undefined;
  if (payload === undefined) throw bad(where, name, index, `an index below ${payloads.length}`);
  return payload;
}

function welcome(header: Header): Welcome {
  if (integer("welcome", header, "protocol", 1) !== 1) {
    throw bad("welcome", "protocol", header.protocol, "1, the only version of this worker");
  }
  const leaseMs = integer("welcome", header, "lease_ms", 100);
  const heartbeatMs = integer("welcome", header, "heartbeat_ms", 10);
  if (heartbeatMs > leaseMs / 2) {
    throw bad("welcome", "heartbeat_ms", heartbeatMs, `at most half of \`lease_ms\` (${leaseMs})`);
  }
  return {
    t: "welcome",
    session: text("welcome", header, "session"),
    leaseMs,
    heartbeatMs,
    maxPayload: integer("welcome", header, "max_payload", 1, PAYLOAD_BYTES),
    features: new Set(strings("welcome", header, "features")),
    gateway: text("welcome", header, "gateway", ""),
  };
}

/** Returns a task with the given fields and the defaults of the others. */
export function newTaskMessage(
  fields: Pick<TaskMessage, "task" | "fence" | "kind" | "attempt"> & Partial<TaskMessage>,
): TaskMessage {
  return {
    payload: EMPTY,
    checkpoint: null,
    queue: "default",
    priority: 128,
    deadlineMs: null,
    heartbeatMs: null,
    group: null,
    key: null,
    parent: null,
    scheduledAt: null,
    items: 0,
    tags: NO_TEXTS,
    headers: NO_TEXTS,
    trace: NO_TEXTS,
    turn: null,
    ...fields,
  };
}

function task(entry: Fields, payloads: readonly Uint8Array[]): TaskMessage {
  return {
    task: text("tasks", entry, "task"),
    fence: text("tasks", entry, "fence"),
    kind: text("tasks", entry, "kind"),
    attempt: integer("tasks", entry, "attempt", 1),
    payload: payloadAt("tasks", entry, "payload", payloads) ?? EMPTY,
    checkpoint: payloadAt("tasks", entry, "checkpoint", payloads),
    queue: text("tasks", entry, "queue", "default"),
    priority: integer("tasks", entry, "priority", 0, 128),
    deadlineMs: optionalInteger("tasks", entry, "deadline_ms", 0),
    heartbeatMs: optionalInteger("tasks", entry, "heartbeat_ms", 1),
    group: optionalText("tasks", entry, "group"),
    key: optionalText("tasks", entry, "key"),
    parent: optionalText("tasks", entry, "parent"),
    scheduledAt: optionalText("tasks", entry, "scheduled_at"),
    items: integer("tasks", entry, "items", 0, 0),
    tags: texts("tasks", entry, "tags"),
    headers: texts("tasks", entry, "headers"),
    trace: texts("tasks", entry, "trace"),
    turn: entry.turn == null ? null : turn(entry.turn, payloads),
  };
}

function turn(entry: unknown, payloads: readonly Uint8Array[]): TurnMessage {
  if (!isObject(entry)) throw bad("tasks", "turn", entry, "an object");
  const [more, newOnly] = [entry.more ?? [], entry.new_only ?? false];
  if (!Array.isArray(more)) throw bad("turn", "more", more, "a list of payload indexes");
  if (typeof newOnly !== "boolean") throw bad("turn", "new_only", newOnly, "true or false");
  const events = [entry.events, ...more].map((index) => {
    const part = payloadAt("turn", { events: index }, "events", payloads);
    if (part === null) throw bad("turn", "events", null, "a payload index");
    return part;
  });
  const [position, generation] = [integer("turn", entry, "position"), integer("turn", entry, "generation")];
  return { events, position, generation, newOnly };
}

function ack(entry: Fields): Ack {
  const result = entry.result;
  if (result !== "ok" && result !== "stale" && result !== "refused") {
    throw bad("ack", "result", result, "ok, stale or refused");
  }
  const why = text("ack", entry, "why", "");
  return { task: text("ack", entry, "task"), fence: text("ack", entry, "fence"), result, why };
}

function alive(header: Header): Alive {
  const refused = new Map<string, string>();
  for (const entry of entries("alive", header, "refused")) {
    refused.set(text("alive", entry, "task"), text("alive", entry, "why", ""));
  }
  return { t: "alive", n: integer("alive", header, "n"), lost: strings("alive", header, "lost"), refused };
}

function stop(header: Header): Stop {
  const why = header.why;
  if (why !== "cancelled" && why !== "lost" && why !== "preempted" && why !== "timeout") {
    throw bad("stop", "why", why, "cancelled, lost, preempted or timeout");
  }
  const graceMs = integer("stop", header, "grace_ms", 0, 0);
  return {
    t: "stop",
    task: text("stop", header, "task"),
    fence: text("stop", header, "fence"),
    why,
    graceMs,
  };
}

function problem(header: Header): Problem {
  const fatal = header.fatal ?? false;
  if (typeof fatal !== "boolean") throw bad("error", "fatal", fatal, "true or false");
  return {
    t: "error",
    code: text("error", header, "code"),
    text: text("error", header, "text", ""),
    remedy: text("error", header, "remedy", ""),
    fatal,
  };
}

/**
 * Returns a checked message of the gateway.
 *
 * Throws ProtocolError `unsupported` for an unknown type, `bad_field` for a wrong field.
 */
export function parse(header: Header, payloads: Uint8Array[]): Incoming {
  switch (header.t) {
    case "welcome":
      return welcome(header);
    case "tasks":
      return {
        t: "tasks",
        tasks: entries("tasks", header, "tasks", 1).map((entry) => task(entry, payloads)),
      };
    case "ack":
      return { t: "ack", ends: entries("ack", header, "ends", 1).map(ack) };
    case "alive":
      return alive(header);
    case "stop":
      return stop(header);
    case "drain":
      return {
        t: "drain",
        why: text("drain", header, "why", ""),
        withinMs: integer("drain", header, "within_ms"),
      };
    case "error":
      return problem(header);
    case "reply":
      return { t: "reply", request: integer("reply", header, "request"), header, payloads };
    default:
      throw new ProtocolError("unsupported", `the type \`${header.t.slice(0, 80)}\` is unknown`);
  }
}
