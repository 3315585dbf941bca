/** Differences between the code of an orchestration and its history, in words. */

import { Nondeterminism } from "../errors.js";
import type { Decision, TurnEvent } from "./turn.js";

/** Returns whether the history has a decision of the code. */
export function isSame(command: Decision, event: TurnEvent): boolean {
  if (command.operation !== event.operation) return false;
  switch (event.e) {
    case "task_submitted":
      return command.do === "task" && command.kind === event.kind;
    case "timer_started":
      return command.do === "timer" && command.until_us === event.until_us;
    default:
      return command.do === "cancel";
  }
}

/**
 * Returns the error of a difference at a position. `event` is null after the end of the history;
 * `end` is the end of the code in words, if it has ended.
 */
export function difference(
  place: number,
  event: TurnEvent | null,
  found: Decision | undefined,
  end: string | null,
): Nondeterminism {
  const expected = event === null ? null : eventText(event);
  const does = found === undefined ? end : commandText(found);
  return new Nondeterminism(place, expected, does, causeOf(event, found));
}

function eventText(event: TurnEvent): string {
  const operation = String(event.operation);
  switch (event.e) {
    case "task_submitted":
      return `the submit of the task \`${String(event.kind)}\` (operation ${operation})`;
    case "timer_started":
      return `a timer until ${String(event.until_us)} µs (operation ${operation})`;
    case "operation_cancelled":
      return `the cancellation of operation ${operation}`;
    case "task_ended":
      return `the end of the task of operation ${operation}`;
    case "timer_fired":
      return `the end of the timer of operation ${operation}`;
    case "signal":
      return `the signal \`${String(event.name)}\``;
    case "cancel_requested":
      return "a request to cancel";
    default:
      return `the event \`${event.e}\``;
  }
}

function commandText(command: Decision): string {
  switch (command.do) {
    case "task":
      return `the submit of the task \`${String(command.kind)}\` (operation ${command.operation})`;
    case "timer":
      return `a timer until ${String(command.until_us)} µs (operation ${command.operation})`;
    case "cancel":
      return `the cancellation of operation ${command.operation}`;
  }
}

/** Returns the likely cause of a difference. */
function causeOf(event: TurnEvent | null, found: Decision | undefined): string {
  if (event === null)
    return "the likely cause is a call that was added before the place where the orchestration waits";
  if (found === undefined)
    return "the likely cause is a call that was removed, or a condition on something other than the context";
  if (found.do === "timer" && event.e === "timer_started")
    return "the likely cause is a changed duration, or a time that does not come from the context";
  if (found.do === "task" && event.e === "task_submitted")
    return "the likely cause is a renamed task or a changed order of calls";
  return "the likely cause is a changed order of calls, or a condition on something other than the context";
}
