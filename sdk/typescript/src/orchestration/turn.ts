/** Turns of orchestrations on the wire: events in, decisions out. */

import { ProtocolError } from "../internal/frames.js";
import { isObject } from "../internal/messages.js";

/** An event as the protocol writes it: `e` is its type. */
export type TurnEvent = Readonly<Record<string, unknown>> & { readonly e: string };

/** A decision of the code: a task, a timer, or the cancellation of one of them. */
export interface Decision {
  do: "task" | "timer" | "cancel";
  operation: number;
  [field: string]: unknown;
}

/** A decision, with the index of the new event that led to it. */
export interface DecisionAfter extends Decision {
  after: number;
}

/** The decisions of the code in a turn, and its state after it. */
export interface TurnReply {
  /** The number of new events that the code has read. */
  read: number;
  decisions: DecisionAfter[];
  /** The names of the signals for which the code waits. */
  waits: string[];
  end: { do: string; [field: string]: unknown };
  /** The number of events of the history after the turn, if the worker keeps the code. */
  length?: number;
}

/** The events that record a decision of the code. */
const COMMANDS = new Set(["task_submitted", "timer_started", "operation_cancelled"]);

/** The events that came from outside. */
const ARRIVALS = new Set([
  "started",
  "turn",
  "task_ended",
  "timer_fired",
  "signal",
  "signal_carried",
  "cancel_requested",
  "cancel_carried",
]);

/** Returns whether an event records a decision of the code. */
export function isCommand(event: TurnEvent): boolean {
  return COMMANDS.has(event.e);
}

/**
 * Returns the events of a turn. Throws ProtocolError if they are not a list of events that this
 * version knows.
 */
export function readEvents(data: Uint8Array): TurnEvent[] {
  let events: unknown;
  try {
    events = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8"));
  } catch (error) {
    throw new ProtocolError("bad_field", `the events of a turn are no JSON: ${(error as Error).message}`);
  }
  return checkEvents(events);
}

/** Returns a list of events, or throws ProtocolError as `readEvents` does. */
export function checkEvents(events: unknown): TurnEvent[] {
  if (!Array.isArray(events)) throw new ProtocolError("bad_field", "the events of a turn are no list");
  events.forEach((event, place) => {
    const name: unknown = isObject(event) ? event.e : undefined;
    if (typeof name === "string" && (COMMANDS.has(name) || ARRIVALS.has(name))) return;
    const shown = (JSON.stringify(name) ?? "absent").slice(0, 80);
    throw new ProtocolError(
      "bad_field",
      `event ${place} of a turn is ${shown}, which this version does not know`,
    );
  });
  return events as TurnEvent[];
}

/** Returns the reply as the protocol writes it. */
export function encodeReply({ read, decisions, waits, end, length }: TurnReply): Uint8Array {
  return Buffer.from(JSON.stringify({ read, decisions, waits, end, length }));
}

/** Returns bytes from their form within JSON. */
export function dataOf(value: unknown): Uint8Array {
  return typeof value === "string" ? Buffer.from(value, "base64") : Buffer.alloc(0);
}

/** Returns the form of bytes within JSON. */
export function textOf(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}
