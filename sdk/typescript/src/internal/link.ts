/** The link to the gateway: connects, reads messages, and connects again. */

import { Refused, Unavailable } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Address } from "./address.js";
import { canReconnect, formatAddress } from "./address.js";
import type { ConnectionListener } from "./channel.js";
import { Channel } from "./channel.js";
import type { Header, Message } from "./frames.js";
import { Decoder, encode, ProtocolError } from "./frames.js";
import type { Incoming, Problem, Stop, TaskMessage, Welcome } from "./messages.js";
import { parse } from "./messages.js";
import type { Outbox } from "./outbox.js";
import { now } from "./port.js";

/** The bounds of the delay before a new connection, in milliseconds. */
const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 10_000;

/** The age of a connection after which the next delay begins at the first one again. */
const STABLE_MS = 10_000;

const WELCOME_MS = 10_000;
const GOODBYE_MS = 2_000;

/** The part of the gateway's heartbeat interval after which a beat is sent. */
const BEAT_FRACTION = 0.75;

/** The errors after which a new connection may succeed. */
const AGAIN: ReadonlySet<string> = new Set(["busy", "shutting_down", "timeout"]);

/** The part of the worker that acts on what the gateway sends. */
export interface Listener {
  /** Returns the first message of a connection, which resumes the session if there is one. */
  hello(session: string | null): Header;
  onWelcome(welcome: Welcome): void;
  onTasks(tasks: TaskMessage[]): void;
  onStop(stop: Stop): void;
  onDrain(why: string, withinMs: number): void;
  /** The leases of tasks have passed on; null means all. */
  onLost(tasks: string[] | null): void;
  /** No connection will follow. Without an error, the worker asked for it. */
  onClosed(error: Error | null): void;
}

/** The connections of a worker, one after the other. */
export class Link implements ConnectionListener {
  readonly #address: Address;
  readonly #outbox: Outbox;
  readonly #listener: Listener;
  readonly #logger: Logger;
  readonly #channel: Channel;
  #state: "connecting" | "greeting" | "open" | "waiting" | "ended" = "connecting";
  #decoder = new Decoder();
  #fault: Error | null = null;
  #closing = false;
  #saidBye = false;
  #session: string | null = null;
  #failures = 0;
  #began = 0;
  #welcomeTimer: NodeJS.Timeout | undefined;
  #leaseTimer: NodeJS.Timeout | undefined;
  #reconnectTimer: NodeJS.Timeout | undefined;

  constructor(address: Address, outbox: Outbox, listener: Listener, logger: Logger) {
    this.#address = address;
    this.#outbox = outbox;
    this.#listener = listener;
    this.#logger = logger;
    this.#channel = new Channel((error) => this.#end(error));
  }

  /** Connects. */
  start(): void {
    this.#began = now();
    this.#state = "connecting";
    this.#decoder = new Decoder();
    this.#fault = null;
    this.#channel.open(this.#address, this);
  }

  /** Ends the connection; none follows. */
  close(): void {
    this.#closing = true;
    if (this.#state === "waiting") this.#end(null);
    else this.#channel.close();
  }

  /** Tells the gateway that everything has ended; it closes the connection. */
  sayBye(last: boolean): void {
    if (last) this.#closing = true;
    if (this.#state !== "open") {
      if (last) this.close();
      return;
    }
    this.#saidBye = true;
    this.#session = null;
    this.#outbox.flush();
    this.#channel.send(encode({ t: "bye" }));
    if (last) setTimeout(() => this.#channel.close(), GOODBYE_MS).unref();
  }

  // Reports of the thread of the connection.

  onOpened(): void {
    this.#state = "greeting";
    this.#welcomeTimer = setTimeout(
      () => this.#fail(new Unavailable("no `welcome` within 10 s")),
      WELCOME_MS,
    );
    this.#channel.send(encode(this.#listener.hello(this.#session)));
  }

  onData(data: Uint8Array): void {
    if (this.#fault !== null) return;
    try {
      this.#decoder.feed(data, (message) => this.#receive(message));
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  onBeat(n: number, at: number, token: number): void {
    this.#outbox.beatSent(n, at, token);
  }

  onClosed(reason: string | null, unusable: boolean): void {
    clearTimeout(this.#welcomeTimer);
    if (this.#state === "ended") return;
    this.#outbox.close();
    const fault = this.#closing ? null : (this.#fault ?? this.#lossOf(reason));
    if (fault !== null) this.#logger.warn(`the gateway at ${formatAddress(this.#address)}: ${fault.message}`);
    const mayReturn = canReconnect(this.#address) && !unusable && !(fault instanceof Refused);
    if (this.#closing || !mayReturn) {
      this.#end(fault);
      return;
    }
    this.#failures = now() - this.#began > STABLE_MS ? 0 : this.#failures + 1;
    this.#state = "waiting";
    const longest = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(this.#failures, 16));
    this.#reconnectTimer = setTimeout(() => this.start(), Math.random() * longest);
  }

  #lossOf(reason: string | null): Error | null {
    if (reason !== null) return new Unavailable(reason);
    if (this.#decoder.insideMessage) {
      return new ProtocolError("bad_frame", "the connection ended within a message");
    }
    return this.#saidBye ? null : new Unavailable("the gateway closed the connection");
  }

  #fail(error: Error): void {
    this.#fault ??= error;
    if (error instanceof ProtocolError && this.#state === "open") {
      this.#channel.send(
        encode({ t: "error", code: error.code, text: error.text.slice(0, 256), fatal: true }),
      );
    }
    this.#channel.close();
  }

  #end(error: Error | null): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    clearTimeout(this.#welcomeTimer);
    clearTimeout(this.#leaseTimer);
    clearTimeout(this.#reconnectTimer);
    if (error !== null || !this.#saidBye) this.#listener.onLost(null);
    this.#outbox.close();
    this.#outbox.abandon();
    this.#channel.end().then(() => this.#listener.onClosed(error));
  }

  // Messages.

  #receive({ header, payloads }: Message): void {
    let incoming: Incoming;
    try {
      incoming = parse(header, payloads);
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.code !== "unsupported" || this.#state !== "open")
        throw error;
      this.#channel.send(encode({ t: "error", code: error.code, text: error.text, fatal: false }));
      return;
    }
    if (this.#state === "open") this.#act(incoming);
    else this.#greet(incoming);
  }

  #greet(incoming: Incoming): void {
    if (incoming.t === "error") throw this.#refusal(incoming);
    if (incoming.t !== "welcome") {
      throw new ProtocolError("unexpected", `\`${incoming.t}\` came before \`welcome\``);
    }
    clearTimeout(this.#welcomeTimer);
    this.#state = "open";
    this.#session = incoming.session;
    this.#saidBye = false;
    this.#decoder.maxPayload = incoming.maxPayload;
    this.#channel.beatEvery(incoming.heartbeatMs * BEAT_FRACTION);
    this.#listener.onWelcome(incoming);
    this.#outbox.open(incoming, this.#channel);
    this.#watchLease();
  }

  #refusal({ code, text, remedy }: Problem): Error {
    const refused = new Refused(code, text, remedy);
    return AGAIN.has(code) && canReconnect(this.#address) ? new Unavailable(refused.message) : refused;
  }

  #act(incoming: Incoming): void {
    switch (incoming.t) {
      case "tasks":
        this.#listener.onTasks(incoming.tasks);
        break;
      case "ack":
        this.#outbox.acknowledge(incoming.ends);
        break;
      case "alive":
        this.#outbox.alive(incoming);
        if (incoming.lost.length > 0) this.#listener.onLost(incoming.lost);
        return;
      case "stop":
        this.#listener.onStop(incoming);
        break;
      case "reply":
        this.#outbox.reply(incoming);
        break;
      case "drain":
        this.#listener.onDrain(incoming.why, incoming.withinMs);
        break;
      case "error":
        this.#reported(incoming);
        return;
      case "welcome":
        throw new ProtocolError("unexpected", "a second `welcome` came");
    }
  }

  /** After a fatal error the gateway has no session of this connection; another one resumes it. */
  #reported({ code, text, remedy, fatal }: Problem): void {
    const { message } = new Refused(code, text, remedy);
    if (fatal) this.#fail(new Unavailable(`the gateway ended the session: ${message}`));
    else this.#logger.error(`the gateway reports ${message}`);
  }

  // The lease.

  #watchLease(): void {
    clearTimeout(this.#leaseTimer);
    const left = this.#outbox.leaseEnd - now();
    if (left !== Number.POSITIVE_INFINITY) {
      this.#leaseTimer = setTimeout(() => this.#checkLease(), Math.max(0, left) + 1);
    }
  }

  /** Gives up the tasks if the lease has passed without an answer of the gateway. */
  #checkLease(): void {
    // After a handler that computed for long, answers wait that came in time.
    this.#channel.catchUp();
    if (this.#state === "ended") return;
    if (now() >= this.#outbox.leaseEnd) {
      const text = "no answer of the gateway within the lease: its tasks are given up";
      this.#outbox.leaseEnd = Number.POSITIVE_INFINITY;
      this.#session = null;
      this.#listener.onLost(null);
      if (this.#state === "open") this.#fail(new Unavailable(text));
      else this.#logger.warn(text);
    }
    this.#watchLease();
  }
}
