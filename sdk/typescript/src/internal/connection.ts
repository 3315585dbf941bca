/**
 * The thread of the connection: it owns the socket and sends the beats, so that a handler that
 * computes for a long time does not cost the lease. It passes bytes on and does not read messages.
 */

import { connect, Socket } from "node:net";
import type { MessagePort } from "node:worker_threads";
import { workerData } from "node:worker_threads";
import type { Address } from "./address.js";
import { encode, ProtocolError } from "./frames.js";
import type { BeatEntry, FromConnection, ToConnection } from "./port.js";
import { beatHeader, now } from "./port.js";
import { Tunnel } from "./tunnel.js";
import { GREETING, READY, Zmtp } from "./zmtp.js";

/** The longest time for the connection and its handshake. */
const HANDSHAKE_MS = 10_000;

/** The time in which a closed connection may write what waits; a request of HTTP may be repeated. */
const CLOSE_MS = 200;
const CLOSE_HTTP_MS = 2_000;

const port = (workerData as { port: MessagePort }).port;

/** The number of the last beat. It ascends over all connections. */
let beats = 0;
let current: Connection | null = null;

function post(message: FromConnection, transfer: ArrayBuffer[] = []): void {
  port.postMessage(message, transfer);
}

/** One connection to a gateway, and the timer of its beats. */
class Connection {
  readonly number: number;
  readonly #socket: Socket | Tunnel;
  readonly #zmtp: Zmtp | null;
  readonly #handshake: NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;
  #error: string | null = null;

  constructor(number: number, address: Address) {
    this.number = number;
    this.#zmtp = address.scheme === "ipc" || address.scheme === "tcp" ? new Zmtp() : null;
    this.#handshake = setTimeout(() => this.#fail("no handshake within 10 s"), HANDSHAKE_MS);
    this.#socket = open(address);
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on("error", (error) => {
      this.#error ??= error.message;
    });
    this.#socket.on("end", () => this.#socket.destroy());
    this.#socket.on("close", () => this.#closed());
    if (this.#zmtp === null) this.#opened();
    else this.#socket.write(Buffer.concat([GREETING, READY]));
  }

  send(messages: Uint8Array[]): void {
    // A message after the close would break the connection before the gateway learns of the close.
    if (this.#socket.writableEnded) return;
    // Messages that are handed over together leave in one system call.
    this.#socket.cork();
    for (const message of messages) this.#socket.write(message);
    this.#socket.uncork();
  }

  /** Starts the beats, at this interval after the last one. */
  beatEvery(intervalMs: number): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      // A beat that waits behind a full socket would not arrive sooner if a second one followed it.
      if (!this.#socket.writableNeedDrain) this.beat(-1, [], []);
    }, intervalMs);
  }

  beat(token: number, entries: BeatEntry[], payloads: Uint8Array[]): void {
    if (this.#socket.writableEnded) return;
    beats += 1;
    post({ t: "beat", connection: this.number, n: beats, at: now(), token });
    this.#socket.write(encodeBeat(beats, entries, payloads));
    this.#timer?.refresh();
  }

  /** Closes the connection after everything was written, or at once if the peer does not read. */
  close(): void {
    this.#socket.destroySoon();
    const limit = this.#socket instanceof Tunnel ? CLOSE_HTTP_MS : CLOSE_MS;
    setTimeout(() => this.#socket.destroy(), limit).unref();
  }

  #opened(): void {
    clearTimeout(this.#handshake);
    post({ t: "opened", connection: this.number });
  }

  #receive(chunk: Buffer): void {
    if (this.#zmtp === null) {
      this.#pass(chunk);
      return;
    }
    try {
      const wasReady = this.#zmtp.ready;
      const parts = this.#zmtp.feed(chunk);
      for (const reply of parts.replies) this.#socket.write(reply);
      if (!wasReady && this.#zmtp.ready) this.#opened();
      for (const data of parts.data) this.#pass(data);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fail(error.text);
    }
  }

  #pass(data: Uint8Array): void {
    // A copy of a small chunk is cheaper than the memory that a transferred slab would keep.
    const own = new Uint8Array(data);
    post({ t: "data", connection: this.number, data: own }, [own.buffer]);
  }

  #fail(error: string): void {
    this.#error ??= error;
    this.#socket.destroy();
  }

  #closed(): void {
    clearTimeout(this.#handshake);
    clearInterval(this.#timer);
    post({ t: "closed", connection: this.number, error: this.#error, unusable: false });
  }
}

function open(address: Address): Socket | Tunnel {
  if (address.scheme === "child")
    return new Socket({ fd: address.descriptor, readable: true, writable: true });
  if (address.scheme === "http") return new Tunnel(address.url, process.env.ONWARD_KEY);
  if (address.scheme === "ipc") return connect({ path: address.path });
  return connect({ host: address.host, port: address.port, noDelay: true });
}

/** Returns a beat. Progress is not worth a lease: without it, the entries of 512 tasks fit. */
function encodeBeat(n: number, entries: BeatEntry[], payloads: Uint8Array[]): Buffer {
  try {
    return encode(beatHeader(n, entries), payloads);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const bare = entries.map(({ progress: _, ...entry }) => entry);
    return encode(beatHeader(n, bare), payloads);
  }
}

function start(number: number, address: Address): void {
  try {
    current = new Connection(number, address);
  } catch (error) {
    const reason =
      address.scheme === "child"
        ? `ONWARD_FD is ${address.descriptor}, which is no socket; start this program by \`onward work --app "node app.js"\``
        : (error as Error).message;
    post({ t: "closed", connection: number, error: reason, unusable: true });
  }
}

port.on("message", (message: ToConnection) => {
  if (message.t === "open") {
    start(message.connection, message.address);
    return;
  }
  // Messages for an earlier connection are dropped.
  const connection = current;
  if (connection?.number !== message.connection) return;
  switch (message.t) {
    case "send":
      connection.send(message.messages);
      break;
    case "beats":
      connection.beatEvery(message.intervalMs);
      break;
    case "beat":
      connection.beat(message.token, message.entries, message.payloads);
      break;
    case "close":
      connection.close();
      break;
  }
});
