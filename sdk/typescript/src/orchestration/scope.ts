/** The orchestration to which the running code belongs: it follows the code across its awaits. */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Branch } from "./futures.js";
import type { Replay } from "./replay.js";

interface Scope {
  replay: Replay;
  branch: Branch<unknown> | null;
}

const scopes = new AsyncLocalStorage<Scope>();

/** Returns the replay of the running code, or undefined outside of orchestrations. */
export function currentReplay(): Replay | undefined {
  return scopes.getStore()?.replay;
}

/** Returns the branch that runs, or undefined outside of branches. */
export function currentBranch(): Branch<unknown> | undefined {
  return scopes.getStore()?.branch ?? undefined;
}

/** Calls a function as code of an orchestration. */
export function runAs<T>(replay: Replay, call: () => T): T {
  return scopes.run({ replay, branch: null }, call);
}

/** Calls a function as code of a branch of the running orchestration. */
export function runIn<T>(branch: Branch<T>, call: () => void): void {
  const scope = scopes.getStore();
  if (scope === undefined) {
    throw new Error(
      "an operation of an orchestration began outside of its code; begin it within its function",
    );
  }
  scopes.run({ replay: scope.replay, branch: branch as Branch<unknown> }, call);
}

/** Calls a function outside of every orchestration, so that its clock is the real one. */
export function runOutside<T>(call: () => T): T {
  return scopes.exit(call);
}
