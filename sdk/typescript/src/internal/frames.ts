/** Frames and messages: the codec of every carrier. It does no I/O. */

import { isUtf8 } from "node:buffer";

export const MORE = 1;
export const LONG = 2;
export const COMMAND = 4;

/** The longest header of a message, in bytes. */
export const HEADER_BYTES = 65_536;

/** The deepest nesting of arrays and objects in a header. */
export const HEADER_DEPTH = 64;

/** The largest number of payloads of a message, and of entries of a list in a header. */
export const PAYLOADS = 1_024;

/** The default bound of one payload, in bytes. */
export const PAYLOAD_BYTES = 1_048_576;

/** The bound of all payloads of a message together, in bytes, unless it has only one. */
export const MESSAGE_BYTES = 16 * 1_048_576;

/** The fields of a message. */
export type Header = { [name: string]: unknown; t: string };

/** A header and its payloads. */
export interface Message {
  header: Header;
  payloads: Uint8Array[];
}

/** A message or frame that the protocol does not allow. `code` is the code of the error. */
export class ProtocolError extends Error {
  constructor(
    readonly code: string,
    readonly text: string,
  ) {
    super(`${code}: ${text}`);
    this.name = "ProtocolError";
  }
}

/** Returns one frame with its flags and length. */
export function frame(body: Uint8Array, flags = 0): Buffer {
  const head = body.length < 256 ? 2 : 9;
  const data = Buffer.allocUnsafeSlow(head + body.length);
  writeHead(data, 0, flags, body.length);
  data.set(body, head);
  return data;
}

function writeHead(data: Buffer, at: number, flags: number, size: number): number {
  if (size < 256) {
    data[at] = flags;
    data[at + 1] = size;
    return at + 2;
  }
  data[at] = flags | LONG;
  data.writeUInt32BE(Math.floor(size / 2 ** 32), at + 1);
  data.writeUInt32BE(size % 2 ** 32, at + 5);
  return at + 9;
}

/**
 * Returns the bytes of a message, in memory of their own.
 *
 * Throws ProtocolError `header_too_large` if the header exceeds its bound.
 */
export function encode(header: Header, payloads: readonly Uint8Array[] = []): Buffer {
  if (payloads.length > 0) header.payloads = payloads.length;
  const text = JSON.stringify(header);
  const size = Buffer.byteLength(text);
  if (size > HEADER_BYTES) {
    throw new ProtocolError(
      "header_too_large",
      `the header of \`${header.t}\` has ${size} bytes, more than ${HEADER_BYTES}; send fewer entries in a message`,
    );
  }
  let total = size + 9;
  for (const payload of payloads) total += payload.length + 9;
  const data = Buffer.allocUnsafeSlow(total);
  let at = writeHead(data, 0, payloads.length > 0 ? MORE : 0, size);
  at += data.write(text, at);
  payloads.forEach((payload, index) => {
    at = writeHead(data, at, index + 1 < payloads.length ? MORE : 0, payload.length);
    data.set(payload, at);
    at += payload.length;
  });
  return data.subarray(0, at);
}

/** Returns the header in `body` of a message with this number of payload frames. */
export function decodeHeader(body: Buffer, payloads: number): Header {
  const value = parseHeader(body);
  if (typeof value !== "object" || value === null || typeof (value as Header).t !== "string") {
    throw new ProtocolError("bad_header", "the header is not an object with a string `t`");
  }
  if (mayBeDeep(body) && depth(value) > HEADER_DEPTH) {
    throw new ProtocolError("bad_header", `the header is nested deeper than ${HEADER_DEPTH}`);
  }
  const header = value as Header;
  const stated = header.payloads ?? 0;
  if (stated !== payloads) {
    const text = `\`payloads\` is ${JSON.stringify(stated)}, but ${payloads} frames follow the header`;
    throw new ProtocolError("payload_count", text);
  }
  return header;
}

function parseHeader(body: Buffer): unknown {
  if (!isUtf8(body)) throw new ProtocolError("bad_header", "the header is not UTF-8");
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new ProtocolError("bad_header", `the header is not JSON: ${(error as Error).message}`);
  }
}

/** Returns whether a header has more brackets than the depth allows, which most have not. */
function mayBeDeep(body: Buffer): boolean {
  let brackets = 0;
  for (const byte of body) {
    if ((byte === 0x5b || byte === 0x7b) && ++brackets > HEADER_DEPTH) return true;
  }
  return false;
}

/** Returns the nesting of a value, level by level, so that it needs no deep stack. */
function depth(value: unknown): number {
  let levels = 0;
  let level = [value].filter(isContainer);
  while (level.length > 0) {
    levels += 1;
    level = level.flatMap((container) => Object.values(container)).filter(isContainer);
  }
  return levels;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** A decoder of a stream of frames into messages. Command frames do not reach it. */
export class Decoder {
  #maxPayload: number;
  #chunks: Buffer[] = [];
  #available = 0;
  #needed = 2;
  #frames: Buffer[] = [];
  #size = 0;
  #complete = false;

  constructor(maxPayload = 0) {
    this.#maxPayload = maxPayload;
  }

  /** Sets the bound of one payload, in bytes. Before `welcome` no payload is allowed. */
  set maxPayload(bytes: number) {
    this.#maxPayload = bytes;
  }

  /** True if the stream stands within a message or frame. */
  get insideMessage(): boolean {
    return this.#frames.length > 0 || this.#available > 0;
  }

  /** Adds received bytes and passes each message that they complete to `act`. */
  feed(data: Uint8Array, act: (message: Message) => void): void {
    this.#chunks.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    this.#available += data.byteLength;
    // A long body is joined once, when its last piece is there, and not with each piece.
    while (this.#available >= this.#needed) {
      const buffer = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
      const used = this.#frame(buffer);
      const rest = buffer.subarray(used);
      this.#chunks = rest.length > 0 ? [rest] : [];
      this.#available = rest.length;
      if (used > 0 && this.#complete) act(this.#message());
    }
  }

  /** Reads one frame. Returns the number of bytes that it has, or 0 if some are missing. */
  #frame(buffer: Buffer): number {
    const flags = buffer[0] as number;
    if (flags > (MORE | LONG)) {
      throw new ProtocolError(
        "bad_frame",
        `the flags of a frame are ${flags}; it is no command, and bits 3-7 are 0`,
      );
    }
    const head = flags & LONG ? 9 : 2;
    if (buffer.length < head) {
      this.#needed = head;
      return 0;
    }
    const size =
      head === 2 ? (buffer[1] as number) : buffer.readUInt32BE(1) * 2 ** 32 + buffer.readUInt32BE(5);
    this.#checkSize(size, flags);
    if (buffer.length < head + size) {
      this.#needed = head + size;
      return 0;
    }
    this.#needed = 2;
    if (this.#frames.length > 0) this.#size += size;
    this.#frames.push(buffer.subarray(head, head + size));
    this.#complete = (flags & MORE) === 0;
    return head + size;
  }

  #message(): Message {
    const [header, ...payloads] = this.#frames as [Buffer, ...Buffer[]];
    this.#frames = [];
    this.#size = 0;
    this.#complete = false;
    return { header: decodeHeader(header, payloads.length), payloads };
  }

  /** Checks a length before its body is read. */
  #checkSize(size: number, flags: number): void {
    const before = this.#frames.length;
    if (before === 0) {
      if (size > HEADER_BYTES) {
        throw new ProtocolError("header_too_large", `a header has ${size} bytes, more than ${HEADER_BYTES}`);
      }
      return;
    }
    if (before > PAYLOADS) {
      throw new ProtocolError("too_many", `a message has more than ${PAYLOADS} payloads`);
    }
    const alone = before === 1 && (flags & MORE) === 0;
    if (size > this.#maxPayload || (!alone && this.#size + size > MESSAGE_BYTES)) {
      throw new ProtocolError(
        "payload_too_large",
        `a payload has ${size} bytes; one may have ${this.#maxPayload}, and several ${MESSAGE_BYTES} together`,
      );
    }
  }
}
