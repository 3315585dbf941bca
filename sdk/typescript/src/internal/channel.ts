/** The worker's side of the thread of the connection. */

import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import type { Address } from "./address.js";
import type { Sink } from "./outbox.js";
import type { BeatEntry, FromConnection, ToConnection } from "./port.js";

/** The part of the worker that acts on what the thread reports. */
export interface ConnectionListener {
  onOpened(): void;
  onData(data: Uint8Array): void;
  onBeat(n: number, at: number, token: number): void;
  onClosed(error: string | null, unusable: boolean): void;
}

/** A thread with at most one connection at a time. */
export class Channel implements Sink {
  readonly #thread: Worker;
  readonly #port;
  #connection = 0;
  #listener: ConnectionListener | null = null;

  /** `onFailure` is called if the thread itself fails, which no connection can cause. */
  constructor(onFailure: (error: Error) => void) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#thread = new Worker(new URL("./connection.js", import.meta.url), {
      workerData: { port: port2 },
      transferList: [port2],
      name: "onward-connection",
    });
    this.#thread.on("error", onFailure);
    port1.on("message", (message: FromConnection) => this.#act(message));
  }

  /** Opens a connection. What the thread reports about it goes to the listener. */
  open(address: Address, listener: ConnectionListener): void {
    this.#connection += 1;
    this.#listener = listener;
    this.#post({ t: "open", connection: this.#connection, address });
  }

  /** Starts the beats of the connection. */
  beatEvery(intervalMs: number): void {
    this.#post({ t: "beats", connection: this.#connection, intervalMs });
  }

  send(...messages: Buffer[]): void {
    const transfer = messages.map(({ buffer }) => buffer as ArrayBuffer);
    this.#post({ t: "send", connection: this.#connection, messages }, transfer);
  }

  beat(token: number, entries: BeatEntry[], payloads: Uint8Array[]): void {
    // Copies, because a view would take all of the memory on which it is.
    const copies = payloads.map((payload) => new Uint8Array(payload));
    const transfer = copies.map(({ buffer }) => buffer);
    this.#post({ t: "beat", connection: this.#connection, token, entries, payloads: copies }, transfer);
  }

  /** Closes the connection; the listener is told when it is closed. */
  close(): void {
    this.#post({ t: "close", connection: this.#connection });
  }

  /** Acts on what has arrived and waits behind other work of the event loop. */
  catchUp(): void {
    for (let found = receiveMessageOnPort(this.#port); found; found = receiveMessageOnPort(this.#port)) {
      this.#act(found.message as FromConnection);
    }
  }

  /** Ends the thread. */
  async end(): Promise<void> {
    this.#port.close();
    await this.#thread.terminate();
  }

  #post(message: ToConnection, transfer: ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer);
  }

  #act(message: FromConnection): void {
    const listener = this.#listener;
    if (listener === null || message.connection !== this.#connection) return;
    switch (message.t) {
      case "opened":
        listener.onOpened();
        break;
      case "data":
        listener.onData(message.data);
        break;
      case "beat":
        listener.onBeat(message.n, message.at, message.token);
        break;
      case "closed":
        this.#listener = null;
        listener.onClosed(message.error, message.unusable);
        break;
    }
  }
}
