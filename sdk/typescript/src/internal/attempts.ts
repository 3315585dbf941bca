/** The pauses between attempts, and the end of trying. */

import { Unavailable } from "../errors.js";

/** The first and the longest pause between two attempts, in milliseconds. */
export const PAUSES_MS = [100, 5_000] as const;

/** Waits, or rejects with the reason of the signal. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}

/** The connection broke. `sent` tells whether the server may have received the request. */
export class Lost extends Error {
  constructor(
    text: string,
    readonly sent: boolean,
  ) {
    super(text);
  }
}

/** Returns the error of a server that does not respond. */
export function unavailable(url: string, lost: Lost): Unavailable {
  return new Unavailable(
    `${url} does not respond (${lost.message}); start it by \`onward serve\`, or set ONWARD_URL`,
  );
}

/** Attempts of one request or watch. */
export class Attempts {
  #pause: number = PAUSES_MS[0];
  #until: number | undefined;

  constructor(readonly retryForMs: number) {}

  /** Starts the time for which attempts may fail again. */
  succeeded(): void {
    this.#until = undefined;
  }

  /** Makes the next pause short again. */
  progressed(): void {
    this.#pause = PAUSES_MS[0];
  }

  /** Waits before the next attempt. Throws the failure when the time is over. */
  async failed(failure: Error, signal: AbortSignal, leastMs?: number): Promise<void> {
    const now = performance.now();
    this.#until ??= now + this.retryForMs;
    const wait = leastMs ?? this.#pause * (0.5 + Math.random() / 2);
    this.#pause = Math.min(2 * this.#pause, PAUSES_MS[1]);
    if (now + wait > this.#until) throw failure;
    await pause(wait, signal);
  }
}
