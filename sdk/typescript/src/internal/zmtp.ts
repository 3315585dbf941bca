/**
 * ZMTP 3.1 with NULL: the handshake, and the commands that are answered within the stream. It does
 * no I/O.
 */

import { COMMAND, frame, LONG, MORE, ProtocolError } from "./frames.js";

const GREETING_BYTES = 64;

/** The longest command that is read, in bytes; a READY or PING has far fewer. */
const COMMAND_BYTES = 8_192;

const SOCKET_TYPE = Buffer.concat([
  Buffer.from("\x0bSocket-Type\0\0\0\x06", "latin1"),
  Buffer.from("DEALER"),
]);

/** The greeting of both sides. */
export const GREETING = Buffer.concat([
  Buffer.from([0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 1]),
  Buffer.from("NULL".padEnd(20, "\0"), "latin1"),
  Buffer.alloc(32),
]);

/** The READY command of a worker. */
export const READY = frame(Buffer.concat([Buffer.from("\x05READY", "latin1"), SOCKET_TYPE]), COMMAND);

/** Parts of a received chunk: bytes of messages to pass on, and bytes to send back. */
export interface Parts {
  data: Uint8Array[];
  replies: Buffer[];
}

/**
 * A filter between the connection and the decoder. It takes the greeting and every command out of
 * the stream, so that commands are answered while the thread of the handlers is busy.
 */
export class Zmtp {
  /** True if the handshake is complete. */
  ready = false;
  #greeted = false;
  #kept: Buffer = Buffer.alloc(0);
  #skip = 0;
  #inMessage = false;

  /** Adds received bytes. Throws ProtocolError if the peer is no gateway or ends the connection. */
  feed(chunk: Uint8Array): Parts {
    const parts: Parts = { data: [], replies: [] };
    const received = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let rest = this.#kept.length > 0 ? Buffer.concat([this.#kept, received]) : received;
    if (!this.#greeted) {
      if (rest.length < GREETING_BYTES) {
        this.#kept = rest;
        return parts;
      }
      checkGreeting(rest);
      this.#greeted = true;
      rest = rest.subarray(GREETING_BYTES);
    }
    this.#kept = rest.subarray(this.#split(rest, parts));
    return parts;
  }

  /** Passes on whole and partial frames of messages. Returns the number of bytes that were used. */
  #split(buffer: Buffer, parts: Parts): number {
    let at = 0;
    let from = 0;
    while (at < buffer.length) {
      if (this.#skip > 0) {
        const taken = Math.min(this.#skip, buffer.length - at);
        this.#skip -= taken;
        at += taken;
        continue;
      }
      const flags = buffer[at] as number;
      const head = flags & LONG ? 9 : 2;
      if (buffer.length - at < head) break;
      const size = sizeAt(buffer, at, head);
      if (flags & COMMAND) {
        this.#checkCommand(flags, size);
        if (buffer.length - at < head + size) break;
        if (at > from) parts.data.push(buffer.subarray(from, at));
        this.#command(buffer.subarray(at + head, at + head + size), parts);
        at = from = at + head + size;
        continue;
      }
      if (!this.ready) throw new ProtocolError("bad_frame", "the gateway sent a message before READY");
      this.#inMessage = (flags & MORE) !== 0;
      at += head;
      this.#skip = size;
    }
    if (at > from) parts.data.push(buffer.subarray(from, at));
    return at;
  }

  #checkCommand(flags: number, size: number): void {
    if (flags & MORE || this.#inMessage || flags > (COMMAND | LONG)) {
      throw new ProtocolError("bad_frame", "a command frame is not allowed here");
    }
    if (size > COMMAND_BYTES) {
      throw new ProtocolError("bad_frame", `a command has ${size} bytes, more than ${COMMAND_BYTES}`);
    }
  }

  #command(body: Buffer, parts: Parts): void {
    const name = body.toString("latin1", 1, 1 + (body[0] ?? 0));
    if (name === "ERROR") {
      throw new ProtocolError("bad_frame", `the gateway ended the connection: ${body.toString("utf8", 7)}`);
    }
    if (!this.ready) {
      if (name !== "READY") throw new ProtocolError("bad_frame", `the gateway sent ${name} instead of READY`);
      this.ready = true;
    } else if (name === "PING") {
      parts.replies.push(
        frame(Buffer.concat([Buffer.from("\x04PONG", "latin1"), body.subarray(7)]), COMMAND),
      );
    }
  }
}

function sizeAt(buffer: Buffer, at: number, head: number): number {
  if (head === 2) return buffer[at + 1] as number;
  return buffer.readUInt32BE(at + 1) * 2 ** 32 + buffer.readUInt32BE(at + 5);
}

function checkGreeting(greeting: Buffer): void {
  if (greeting[0] !== 0xff || ((greeting[9] as number) & 1) === 0 || (greeting[10] as number) < 3) {
    throw new ProtocolError("bad_frame", "the peer does not speak ZMTP 3; check the address of the gateway");
  }
  const mechanism = greeting.toString("latin1", 12, 32).replace(/\0+$/, "");
  if (mechanism !== "NULL") {
    throw new ProtocolError(
      "bad_frame",
      `the gateway requires the mechanism ${mechanism}; this worker has NULL only`,
    );
  }
}
