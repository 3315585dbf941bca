/**
 * The outbox: everything that waits to be sent, and what is kept until the gateway acknowledges it.
 */

import type { Context } from "../context.js";
import { Cancelled, Refused, Unavailable } from "../errors.js";
import type { End } from "./ends.js";
import { refused } from "./ends.js";
import type { Header } from "./frames.js";
import { encode, PAYLOADS, ProtocolError } from "./frames.js";
import type { Ack, Alive, Reply, Welcome } from "./messages.js";
import type { BeatEntry } from "./port.js";
import { now } from "./port.js";

/** The number of ends that are gathered into one message. */
const ENDS_OF_A_MESSAGE = 128;

/** The size of payloads at which nothing further is gathered into a message, in bytes. */
const GATHERED_BYTES = 1_048_576;

/** The largest number of tasks that run, wait for a slot, or wait for their acknowledgement. */
export const HELD = 1_024;

/** The largest number of tasks in one beat, so that its header stays within its bound. */
const ENTRIES_OF_A_BEAT = 512;

/** The shortest time between two beats that carry progress. */
const PROGRESS_MS = 100;

/** The connection to which the outbox writes. */
export interface Sink {
  /** Sends messages, each in memory of its own, which it takes. */
  send(...messages: Buffer[]): void;
  /** Sends a beat. Its number comes back later, with the token. */
  beat(token: number, entries: BeatEntry[], payloads: Uint8Array[]): void;
}

interface Deferred<T> {
  resolve(value: T): void;
  reject(error: Error): void;
}

interface Request extends Deferred<Reply> {
  header: Header;
  payloads: Uint8Array[];
  resend: boolean;
}

interface Checkpoint extends Deferred<void> {
  context: Context;
  payload: Uint8Array;
}

/**
 * Collects what handlers add during one turn of the event loop and sends it in few messages.
 *
 * `window` is the number of tasks that the worker wants to hold at once. `onIdle` is called when a
 * draining worker holds and keeps nothing any more.
 */
export class Outbox {
  readonly held = new Map<string, Context>();
  /** Ends without their acknowledgement, by task and fence. */
  readonly kept = new Map<string, { task: string; fence: string; end: End; refusals: number }>();
  /** The time at which the lease passes, in the milliseconds of `now`. */
  leaseEnd = Number.POSITIVE_INFINITY;
  onIdle: () => void = () => {};
  readonly #window: number;
  #sink: Sink | null = null;
  #scheduled = false;
  #draining = false;
  #isAbandoned = false;
  #received = 0;
  #credit = 0;
  #leaseMs = 0;
  #ends: End[] = [];
  #requests = new Map<number, Request>();
  #unsent = new Set<number>();
  #requestNumber = 0;
  #touched = new Map<string, Context>();
  #checkpoints: Checkpoint[] = [];
  #beatToken = 0;
  /** Checkpoints of beats that were sent, first by token and then by the number of the beat. */
  #numberless = new Map<number, Checkpoint[]>();
  #beats = new Map<number, { at: number; checkpoints: Checkpoint[] }>();
  #nextProgress = 0;
  #progressTimer: NodeJS.Timeout | undefined;

  constructor(window: number) {
    this.#window = Math.min(window, HELD);
  }

  // The life of a connection.

  /** Begins a connection: credit starts again, and what was not acknowledged is sent again. */
  open(welcome: Welcome, sink: Sink): void {
    this.#sink = sink;
    this.#received = this.#credit = 0;
    this.#ends = [...this.kept.values()].map(({ end }) => end);
    const unanswered = [...this.#beats.values()].flatMap(({ checkpoints }) => checkpoints);
    this.#checkpoints = [...[...this.#numberless.values()].flat(), ...unanswered, ...this.#checkpoints];
    this.#numberless.clear();
    this.#beats.clear();
    this.#unsent = new Set(this.#requests.keys());
    this.#leaseMs = welcome.leaseMs;
    this.leaseEnd = now() + welcome.leaseMs;
    if (this.#draining) sink.send(encode({ t: "drain" }));
    this.#wake();
  }

  /** Ends a connection. Requests that may not be sent twice fail. */
  close(): void {
    this.#sink = null;
    clearTimeout(this.#progressTimer);
    this.#progressTimer = undefined;
    for (const [number, request] of this.#requests) {
      if (request.resend) continue;
      this.#requests.delete(number);
      request.reject(
        new Unavailable("the connection to the gateway was lost before the reply; give the task a key"),
      );
    }
  }

  /** Fails every request and checkpoint, because no connection will follow. */
  abandon(): void {
    const error = noGateway();
    this.#isAbandoned = true;
    const beats = [...this.#beats.values()].flatMap(({ checkpoints }) => checkpoints);
    const checkpoints = [...this.#checkpoints, ...[...this.#numberless.values()].flat(), ...beats];
    const requests = [...this.#requests.values()];
    this.#checkpoints = [];
    this.#numberless.clear();
    this.#beats.clear();
    this.#requests.clear();
    for (const waiting of [...requests, ...checkpoints]) waiting.reject(error);
  }

  // Calls of the handlers.

  /** Counts received tasks against the credit. */
  receive(count: number): void {
    this.#received += count;
  }

  /** Returns whether the worker holds an attempt, or has ended it without an acknowledgement. */
  knows(task: string, fence: string): boolean {
    return this.held.get(task)?.message.fence === fence || this.kept.has(`${task}.${fence}`);
  }

  /** Ends an attempt. null means that nothing is sent, because the lease has passed on. */
  end(context: Context, end: End | null): void {
    const { task, fence } = context.message;
    if (this.held.get(task) === context) this.held.delete(task);
    if (this.#touched.get(task) === context) this.#touched.delete(task);
    if (end !== null) {
      this.kept.set(`${task}.${fence}`, { task, fence, end, refusals: 0 });
      this.#ends.push(end);
    }
    this.#wake();
    this.#checkIdle();
  }

  /** Has a beat carry the context's heartbeat and progress. */
  touch(context: Context): void {
    if (this.held.get(context.taskId) !== context) return;
    this.#touched.set(context.taskId, context);
    this.#wake();
  }

  /** Sends a checkpoint with a beat, which is sent at once. */
  saveCheckpoint(context: Context, payload: Uint8Array): Promise<void> {
    if (this.#isAbandoned) return Promise.reject(noGateway());
    return new Promise((resolve, reject) => {
      this.#checkpoints.push({ context, payload, resolve, reject });
      this.#wake();
    });
  }

  /** Sends a request, again after a reconnect if `resend`. */
  request(header: Header, payloads: Uint8Array[], resend: boolean): Promise<Reply> {
    if (this.#isAbandoned) return Promise.reject(noGateway());
    return new Promise((resolve, reject) => {
      this.#requestNumber += 1;
      this.#requests.set(this.#requestNumber, { header, payloads, resend, resolve, reject });
      this.#unsent.add(this.#requestNumber);
      this.#wake();
    });
  }

  /** Stops granting credit, or begins again. */
  drain(draining: boolean): void {
    if (draining && !this.#draining) this.#sink?.send(encode({ t: "drain" }));
    this.#draining = draining;
    this.#wake();
    this.#checkIdle();
  }

  /** Forgets the ends that no gateway will acknowledge. */
  forgetEnds(): void {
    this.kept.clear();
    this.#ends = [];
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#draining && this.held.size === 0 && this.kept.size === 0) this.onIdle();
  }

  // Replies of the gateway.

  /** Forgets acknowledged ends. A refused end is replaced by a failure that says why. */
  acknowledge(acks: readonly Ack[]): void {
    for (const { task, fence, result, why } of acks) {
      const key = `${task}.${fence}`;
      const kept = this.kept.get(key);
      if (kept === undefined) continue;
      if (result === "refused") {
        kept.end = refused(task, fence, why, kept.refusals > 0);
        kept.refusals += 1;
        this.#ends.push(kept.end);
      } else {
        this.kept.delete(key);
      }
    }
    this.#wake();
    this.#checkIdle();
  }

  /** Learns the number of a beat that was sent at a time, and the token if the outbox made it. */
  beatSent(n: number, at: number, token: number): void {
    const checkpoints = this.#numberless.get(token) ?? [];
    this.#numberless.delete(token);
    this.#beats.set(n, { at, checkpoints });
  }

  /** Extends the lease from the sending of the answered beat, and ends its checkpoints. */
  alive(alive: Alive): void {
    const beat = this.#beats.get(alive.n);
    if (beat === undefined) return;
    this.#beats.delete(alive.n);
    this.leaseEnd = Math.max(this.leaseEnd, beat.at + this.#leaseMs);
    for (const { context, resolve, reject } of beat.checkpoints) {
      const why = alive.refused.get(context.taskId);
      if (alive.lost.includes(context.taskId)) reject(new Cancelled("lost"));
      else if (why !== undefined) reject(new Refused("invalid", why));
      else resolve();
    }
  }

  /** Ends a request. A reply to none is ignored. */
  reply(reply: Reply): void {
    const request = this.#requests.get(reply.request);
    this.#requests.delete(reply.request);
    request?.resolve(reply);
  }

  // Sending.

  /**
   * Sends at the end of this turn of the event loop, so that the ends of many handlers share
   * messages.
   */
  #wake(): void {
    if (this.#scheduled || this.#sink === null) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  /** Sends what there is. */
  flush(): void {
    const sink = this.#sink;
    if (sink === null) return;
    const parts: Buffer[] = [];
    while (this.#ends.length > 0) parts.push(...encodeEnds(this.#gather()));
    for (const number of this.#unsent) {
      const request = this.#requests.get(number);
      if (request) parts.push(encode({ ...request.header, request: number }, request.payloads));
    }
    this.#unsent.clear();
    const credit = this.#nextCredit();
    if (credit > this.#credit) {
      this.#credit = credit;
      parts.push(encode({ t: "grant", credit }));
    }
    if (parts.length > 0) sink.send(...parts);
    this.#sendBeats(sink);
  }

  #gather(): End[] {
    let count = 0;
    let size = 0;
    for (const end of this.#ends) {
      for (const { payload } of end.references) size += payload.length;
      if (count === ENDS_OF_A_MESSAGE || (count > 0 && size > GATHERED_BYTES)) break;
      count += 1;
    }
    return this.#ends.splice(0, count);
  }

  #nextCredit(): number {
    if (this.#draining) return 0;
    const room = Math.min(this.#window - this.held.size, HELD - this.held.size - this.kept.size);
    return this.#received + Math.max(0, room);
  }

  #sendBeats(sink: Sink): void {
    const time = now();
    const isDue = this.#touched.size > 0 && time >= this.#nextProgress;
    if (isDue || this.#checkpoints.length > 0) {
      this.#nextProgress = time + PROGRESS_MS;
      do this.#sendBeat(sink);
      while (this.#checkpoints.length > 0);
    }
    if (this.#touched.size > 0 && this.#progressTimer === undefined) {
      this.#progressTimer = setTimeout(() => {
        this.#progressTimer = undefined;
        this.flush();
      }, this.#nextProgress - time);
    }
  }

  #sendBeat(sink: Sink): void {
    const entries = new Map<string, BeatEntry>();
    const payloads: Uint8Array[] = [];
    let count = 0;
    let size = 0;
    for (const { context, payload } of this.#checkpoints) {
      size += payload.length;
      if (count === ENTRIES_OF_A_BEAT / 2 || (count > 0 && size > GATHERED_BYTES)) break;
      // A checkpoint that follows another one of its task in the same beat replaces it.
      entries.set(context.taskId, { ...entryOf(context), checkpoint: payloads.length });
      this.#touched.delete(context.taskId);
      payloads.push(payload);
      count += 1;
    }
    for (const [task, context] of this.#touched) {
      if (entries.size === ENTRIES_OF_A_BEAT) break;
      entries.set(task, entryOf(context));
      this.#touched.delete(task);
    }
    this.#beatToken += 1;
    this.#numberless.set(this.#beatToken, this.#checkpoints.splice(0, count));
    sink.beat(this.#beatToken, [...entries.values()], payloads);
  }
}

function noGateway(): Error {
  return new Unavailable("the worker has no connection to a gateway any more");
}

function entryOf(context: Context): BeatEntry {
  const { task, fence } = context.message;
  return context.progressFields === null
    ? { task, fence }
    : { task, fence, progress: context.progressFields };
}

/** Returns the messages that carry the ends: one, or more where a header would be too long. */
function encodeEnds(ends: End[]): Buffer[] {
  const payloads: Uint8Array[] = [];
  for (const { references } of ends) {
    for (const { target, name, payload } of references) {
      target[name] = payloads.length;
      payloads.push(payload);
    }
  }
  try {
    if (payloads.length > PAYLOADS) throw new ProtocolError("too_many", "an end has too many payloads");
    return [encode({ t: "end", ends: ends.map(({ entry }) => entry) }, payloads)];
  } catch (error) {
    if (!(error instanceof ProtocolError) || ends.length === 1) throw error;
    const middle = ends.length >> 1;
    return [...encodeEnds(ends.slice(0, middle)), ...encodeEnds(ends.slice(middle))];
  }
}
