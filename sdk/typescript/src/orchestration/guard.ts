/**
 * The guard of orchestrations: it replaces clocks and random numbers, and refuses what a replay
 * would do again or see otherwise. Code outside of orchestrations gets the real ones.
 */

import { createHook } from "node:async_hooks";
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { NotDeterministic } from "../errors.js";
import { fractionOf, uuidOf } from "./random.js";
import type { Replay } from "./replay.js";
import { currentReplay } from "./scope.js";

const REMEDY = "move it into a task, and wait with `ctx.sleep`";

/** The asynchronous resources that no orchestration may use, by the names that Node.js has for them. */
const REFUSED: Readonly<Record<string, string>> = {
  CHECKPRIMEREQUEST: "computes on another thread",
  FILEHANDLE: "opens a file",
  FSREQCALLBACK: "reads or writes a file",
  FSREQPROMISE: "reads or writes a file",
  GETADDRINFOREQWRAP: "resolves a name",
  GETNAMEINFOREQWRAP: "resolves a name",
  HTTP2SESSION: "sends a request",
  HTTPCLIENTREQUEST: "sends a request",
  Immediate: "waits for the event loop",
  PBKDF2REQUEST: "computes on another thread",
  PIPECONNECTWRAP: "connects a socket",
  PROCESSWRAP: "starts a program",
  QUERYWRAP: "resolves a name",
  RANDOMBYTESREQUEST: "draws random bytes",
  SCRYPTREQUEST: "computes on another thread",
  TCPCONNECTWRAP: "connects a socket",
  TCPSERVERWRAP: "listens on a socket",
  TCPWRAP: "opens a socket",
  Timeout: "starts a timer",
  UDPWRAP: "opens a socket",
  WORKER: "starts a thread",
};

/** The functions of the global object that no orchestration may call. */
const REFUSED_GLOBALS: Readonly<Record<string, string>> = {
  fetch: "sends a request",
  setImmediate: "waits for the event loop",
  setInterval: "starts a timer",
  setTimeout: "starts a timer",
};

const REFUSED_CRYPTO = [
  "randomInt",
  "randomFill",
  "randomFillSync",
  "generateKeyPairSync",
  "generateKeySync",
];

let isInstalled = false;
/** The number of turns that run. The hook costs time, so it is on only while one does. */
let turns = 0;

const hook = createHook({
  init(_, type) {
    currentReplay()?.guarded.note(type);
  },
});

function refusal(what: string, call: string): NotDeterministic {
  return new NotDeterministic(
    `the orchestration ${what} (${call}), which a replay would do again; ${REMEDY}`,
  );
}

/** The guard of one orchestration. */
export class Guarded {
  #isActive = false;
  #ticks = 0;
  #fault: NotDeterministic | null = null;

  /** Notes that the code made an asynchronous resource. It must not throw: Node.js would exit. */
  note(type: string): void {
    if (type === "TickObject") this.#ticks += 1;
    const what = REFUSED[type];
    if (what !== undefined) this.#fault ??= refusal(what, type);
  }

  /** Throws NotDeterministic if the code runs outside of its turn. */
  check(): void {
    if (this.#isActive) return;
    throw new NotDeterministic(
      "the orchestration goes on outside of its turn, after it awaited something that is not of its context;" +
        ` ${REMEDY}`,
    );
  }

  /** Runs a turn, and guards its code. */
  async run<T>(turn: () => Promise<T>): Promise<T> {
    this.#isActive = true;
    turns += 1;
    if (turns === 1) hook.enable();
    try {
      return await turn();
    } finally {
      this.#isActive = false;
      turns -= 1;
      if (turns === 0) hook.disable();
    }
  }

  /** Waits until the code waits. Throws NotDeterministic if it did something that is refused. */
  async settle(): Promise<void> {
    let before: number;
    do {
      before = this.#ticks;
      // A tick that is set from a microtask runs when no microtask is left.
      await new Promise<void>((resolve) => queueMicrotask(() => process.nextTick(resolve)));
    } while (this.#ticks !== before);
    if (this.#fault !== null) throw this.#fault;
  }
}

/** Installs the guard. It cannot be removed, and costs one look-up outside of orchestrations. */
export function install(): void {
  if (isInstalled) return;
  isInstalled = true;
  replaceDate();
  Math.random = within(Math.random, (replay) => fractionOf(replay.draw()));
  performance.now = within(performance.now.bind(performance), (replay) => replay.nowUs / 1_000);
  for (const [name, what] of Object.entries(REFUSED_GLOBALS)) refuse(globalThis, name, what);
  refuse(Atomics, "wait", "sleeps");
  replaceCrypto();
  catchRejections();
}

/** Returns a function that calls another one within orchestrations. */
function within<A extends unknown[], T>(
  real: (...args: A) => T,
  instead: (replay: Replay, ...args: A) => T,
): (...args: A) => T {
  return (...args) => {
    const replay = currentReplay();
    return replay === undefined ? real(...args) : instead(replay, ...args);
  };
}

/** Replaces a function of an object by one that orchestrations may not call. */
function refuse(object: object, name: string, what: string): void {
  const real: unknown = Reflect.get(object, name);
  if (typeof real !== "function") return;
  const guarded = new Proxy(real, {
    apply(target, self, args) {
      if (currentReplay() !== undefined) throw refusal(what, name);
      return Reflect.apply(target, self, args) as unknown;
    },
  });
  Object.defineProperty(object, name, { value: guarded, writable: true, configurable: true });
}

function replaceDate(): void {
  const Real = Date;
  const nowMs = (replay: Replay) => Math.floor(replay.nowUs / 1_000);
  Real.now = within(Real.now, nowMs);
  const guarded = new Proxy(Real, {
    construct(target, args, newTarget) {
      const replay = args.length === 0 ? currentReplay() : undefined;
      return Reflect.construct(target, replay === undefined ? args : [nowMs(replay)], newTarget) as object;
    },
    apply(target) {
      const replay = currentReplay();
      return replay === undefined ? target() : new target(nowMs(replay)).toString();
    },
  });
  Real.prototype.constructor = guarded;
  globalThis.Date = guarded;
}

function replaceCrypto(): void {
  const uuid = within(
    crypto.randomUUID,
    (replay) => uuidOf(replay.draw(), replay.draw()) as ReturnType<typeof crypto.randomUUID>,
  );
  crypto.randomUUID = uuid;
  Object.defineProperty(globalThis.crypto, "randomUUID", { value: uuid, writable: true, configurable: true });
  const webValues = globalThis.crypto.getRandomValues.bind(globalThis.crypto);
  const values = within(webValues as (array: NodeJS.TypedArray) => NodeJS.TypedArray, (replay, array) => {
    fill(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), replay);
    return array;
  });
  Object.defineProperty(globalThis.crypto, "getRandomValues", {
    value: values,
    writable: true,
    configurable: true,
  });
  const realBytes = crypto.randomBytes as (...args: unknown[]) => unknown;
  const bytes = within(realBytes, (replay, size, callback) => {
    if (callback !== undefined) throw refusal("draws random bytes on another thread", "randomBytes");
    return fill(Buffer.alloc(size as number), replay);
  });
  crypto.randomBytes = bytes as typeof crypto.randomBytes;
  for (const name of REFUSED_CRYPTO) refuse(crypto, name, "draws random numbers");
  // Modules that import one of these by its name see the replaced one too.
  syncBuiltinESMExports();
}

function fill<T extends Uint8Array>(array: T, replay: Replay): T {
  for (let at = 0; at < array.length; at += 8) {
    let bits = replay.draw();
    for (let byte = at; byte < Math.min(at + 8, array.length); byte += 1) {
      array[byte] = Number(bits & 0xffn);
      bits >>= 8n;
    }
  }
  return array;
}

/**
 * Keeps the rejection of a promise of an orchestration from ending the process, and from its
 * listeners: the next replay would do the same. Every other event passes.
 */
function catchRejections(): void {
  const real = process.emit as (event: string, ...args: unknown[]) => boolean;
  const emit = (event: string, ...args: unknown[]): boolean => {
    const replay = event === "unhandledRejection" ? currentReplay() : undefined;
    if (replay === undefined) return real.call(process, event, ...args);
    replay.unhandled.push(args[0]);
    return true;
  };
  process.emit = emit as typeof process.emit;
}
