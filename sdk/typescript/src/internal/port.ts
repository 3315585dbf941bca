/** Messages between the worker's thread and the thread of its connection. */

import type { Address } from "./address.js";
import type { Header } from "./frames.js";

/** An entry of a beat; `checkpoint` is an index into its payloads. */
export interface BeatEntry {
  task: string;
  fence: string;
  progress?: object;
  checkpoint?: number;
}

/** A message to the thread of the connection. `connection` numbers the connections of a worker. */
export type ToConnection =
  | { t: "open"; connection: number; address: Address }
  | { t: "beats"; connection: number; intervalMs: number }
  | { t: "beat"; connection: number; token: number; entries: BeatEntry[]; payloads: Uint8Array[] }
  | { t: "send"; connection: number; messages: Uint8Array[] }
  | { t: "close"; connection: number };

/** A message from the thread of the connection. `at` is a time of `now`. */
export type FromConnection =
  | { t: "opened"; connection: number }
  | { t: "data"; connection: number; data: Uint8Array }
  | { t: "beat"; connection: number; n: number; at: number; token: number }
  | { t: "closed"; connection: number; error: string | null; unusable: boolean };

/** Returns the milliseconds of a monotonic clock that all threads of the process share. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Returns the header of a beat. */
export function beatHeader(n: number, entries: BeatEntry[]): Header {
  return entries.length > 0 ? { t: "beat", n, tasks: entries } : { t: "beat", n };
}
