/** The HTTP carrier: the bytes of a connection in requests. */

import { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";

/** The largest number of bytes of one request. */
const SEND_BYTES = 262_144;

/** The time for which a request waits for bytes of the gateway. */
const WAIT_MS = 25_000;

/** The time after which a request counts as lost. */
const REQUEST_MS = 35_000;

/** The time for which a lost request is repeated, before the connection counts as lost. */
const LOST_MS = 10_000;

/** The time for which a lost request to close the connection is repeated. */
const LEAVE_MS = 2_000;

const PAUSE_MS = 100;

/** The status of a request without a response, and those of a server that is busy. */
const REPEATED: ReadonlySet<number> = new Set([0, 409, 429, 503]);

/** A response; status 0 stands for a lost one. */
interface Reply {
  status: number;
  data: Buffer;
}

type Callback = (error?: Error | null) => void;

/** The gateway has ended the connection. */
class Ended extends Error {}

/** One connection. Both directions count bytes, so that a lost request can be repeated. */
export class Tunnel extends Duplex {
  readonly #url: string;
  readonly #headers: Record<string, string> = { "content-type": "application/octet-stream" };
  readonly #requests = new Set<AbortController>();
  #connection = "";
  #sent = 0;
  #received = 0;

  constructor(url: string, key: string | undefined) {
    super({ writableHighWaterMark: SEND_BYTES, readableHighWaterMark: SEND_BYTES });
    this.#url = url;
    if (key) this.#headers.authorization = `Bearer ${key}`;
  }

  /** Closes the connection after everything was written. */
  destroySoon(): void {
    this.end();
  }

  override _construct(callback: Callback): void {
    this.#open().then(() => callback(), callback);
  }

  override _write(chunk: Buffer, _: BufferEncoding, callback: Callback): void {
    this.#act(this.#send(chunk), callback);
  }

  override _writev(chunks: { chunk: Buffer }[], callback: Callback): void {
    // Bytes that came while a request was under way travel in the next one.
    this.#act(this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk))), callback);
  }

  override _read(): void {
    this.#act(this.#receive(), () => {});
  }

  /** Closes the connection at the gateway, which may have closed it before. */
  override _final(callback: Callback): void {
    this.#leave().then(() => {
      callback();
      this.destroy();
    }, callback);
  }

  override _destroy(error: Error | null, callback: Callback): void {
    for (const request of this.#requests) request.abort();
    callback(error);
  }

  /** Reports the end of an operation. The end of the connection is no error: its reader sees it. */
  #act(operation: Promise<void>, callback: Callback): void {
    operation.then(
      () => callback(),
      (error) => {
        if (this.destroyed) callback();
        else if (error instanceof Ended) this.push(null);
        else this.destroy(error);
      },
    );
  }

  async #open(): Promise<void> {
    const { status, data } = await this.#request("POST", "/v1/work");
    if (status === 0) throw new Error(`the server at ${this.#url} does not respond`);
    if (status !== 201) throw new Error(`the server refuses workers: ${problem(status, data)}`);
    this.#connection = encodeURIComponent(JSON.parse(data.toString()).connection);
  }

  async #send(data: Buffer): Promise<void> {
    for (let at = 0; at < data.length; at += SEND_BYTES) {
      const part = data.subarray(at, at + SEND_BYTES);
      await this.#repeat(`send?from=${this.#sent}`, part);
      this.#sent += part.length;
    }
  }

  /** Waits for bytes of the gateway. */
  async #receive(): Promise<void> {
    let data = Buffer.alloc(0);
    while (data.length === 0) {
      data = await this.#repeat(`receive?from=${this.#received}&wait_ms=${WAIT_MS}`);
    }
    this.#received += data.length;
    this.push(data);
  }

  /** Asks the gateway to close the connection until there is a response, for a limited time. */
  async #leave(): Promise<void> {
    const until = performance.now() + LEAVE_MS;
    for (;;) {
      const { status } = await this.#request("DELETE", `/v1/work/${this.#connection}`);
      if (!REPEATED.has(status) || this.destroyed || performance.now() > until) return;
      await pause(PAUSE_MS);
    }
  }

  /** Sends a request until there is a response, for a limited time. */
  async #repeat(path: string, body?: Buffer): Promise<Buffer<ArrayBuffer>> {
    let until: number | undefined;
    for (;;) {
      const { status, data } = await this.#request("POST", `/v1/work/${this.#connection}/${path}`, body);
      if (status === 200 || status === 204) return data as Buffer<ArrayBuffer>;
      if (!REPEATED.has(status)) throw new Ended(problem(status, data));
      until ??= performance.now() + LOST_MS;
      await pause(PAUSE_MS);
      if (this.destroyed || performance.now() > until) throw new Ended("the server does not respond");
    }
  }

  async #request(method: string, path: string, body?: Buffer): Promise<Reply> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), REQUEST_MS);
    this.#requests.add(controller);
    try {
      const bytes = body === undefined ? null : new Uint8Array(body);
      const options: RequestInit = { method, headers: this.#headers, body: bytes, redirect: "error" };
      const response = await fetch(this.#url + path, { ...options, signal: controller.signal });
      return { status: response.status, data: Buffer.from(await response.arrayBuffer()) };
    } catch {
      return { status: 0, data: Buffer.alloc(0) };
    } finally {
      clearTimeout(timer);
      this.#requests.delete(controller);
    }
  }
}

function problem(status: number, data: Buffer): string {
  try {
    const { code, detail, remedy } = JSON.parse(data.toString());
    if (code !== undefined) return [`${code}: ${detail}`, remedy].filter(Boolean).join("; ");
  } catch {
    // Not a problem document, but the page of a proxy.
  }
  return `status ${status}`;
}
