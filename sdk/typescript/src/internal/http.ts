/** HTTP requests, repeated until they succeed or the time for it is over. */

import { readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { Conflict, Denied, Invalid, NotFound, Overloaded, Problem } from "../client-errors.js";
import { Unavailable } from "../errors.js";
import { Attempts, Lost, unavailable } from "./attempts.js";

const DEFAULT_URL = "http://127.0.0.1:7070";

/** The longest time without a byte on an event stream; the server sends one every 15 s. */
const QUIET_MS = 45_000;

const CLASSES: Readonly<Record<number, typeof Problem>> = {
  400: Invalid,
  401: Denied,
  403: Denied,
  404: NotFound,
  409: Conflict,
  412: Conflict,
  413: Invalid,
  415: Invalid,
  422: Invalid,
  429: Overloaded,
  503: Overloaded,
};
const REPEATED = [429, 502, 503, 504];

/** Errors of a connection that was never made, so that nothing was sent. */
const NOT_SENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"];

/**
 * A request. `waitMs` is the time for which the server may delay its response. A request that is
 * not repeatable is sent again only if it certainly had no effect.
 */
export interface HttpRequest {
  method: "GET" | "POST";
  path: string;
  body?: string;
  headers?: Record<string, string>;
  isRepeatable?: boolean;
  waitMs?: number;
  signal?: AbortSignal | undefined;
}

/** The settings of a transport. */
export interface TransportOptions {
  url?: string | undefined;
  key?: string | undefined;
  keyFile?: string | undefined;
  timeoutMs: number;
  retryForMs: number;
}

/** Requests to one server. */
export class Transport {
  readonly url: string;
  readonly retryForMs: number;
  readonly #timeoutMs: number;
  readonly #authorization: () => string | undefined;
  readonly #closed = new AbortController();

  constructor(options: TransportOptions) {
    const text = options.url ?? (process.env.ONWARD_URL || DEFAULT_URL);
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
      throw new RangeError(`url is \`${text}\`; write it as http://HOST:PORT`);
    }
    this.url = url.href.replace(/\/$/, "");
    this.retryForMs = options.retryForMs;
    this.#timeoutMs = options.timeoutMs;
    const isLocal = ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname);
    this.#authorization = authorization(options, isLocal);
  }

  /** Aborts when the client is closed, or the caller's signal is. */
  signal(own?: AbortSignal): AbortSignal {
    return own === undefined ? this.#closed.signal : AbortSignal.any([own, this.#closed.signal]);
  }

  /** Ends requests and streams that are under way. */
  close(): void {
    this.#closed.abort(new Unavailable("the client is closed"));
  }

  /**
   * Sends a request until there is a response. Throws Problem for a response with an error, and
   * Unavailable without a response.
   */
  async send(request: HttpRequest): Promise<Uint8Array> {
    const attempts = new Attempts(this.retryForMs);
    const signal = this.signal(request.signal);
    for (;;) {
      try {
        return await this.#once(request, signal);
      } catch (error) {
        if (error instanceof Problem) {
          if (!mayRepeat(error, request)) throw error;
          await attempts.failed(error, signal, error.retryAfterMs);
        } else if (error instanceof Lost) {
          if (error.sent && request.isRepeatable === false) {
            const text = `${this.url}: the connection was lost before the response (${error.message})`;
            throw new Unavailable(`${text}; look whether the request took effect`, { cause: error });
          }
          await attempts.failed(unavailable(this.url, error), signal);
        } else {
          throw error;
        }
      }
    }
  }

  /** Sends a request and returns the JSON value of the response. */
  async json<T>(request: HttpRequest): Promise<T> {
    return JSON.parse(Buffer.from(await this.send(request)).toString());
  }

  async #once(request: HttpRequest, signal: AbortSignal): Promise<Uint8Array> {
    const authorization = this.#authorization();
    const limit = AbortSignal.timeout(Math.ceil(this.#timeoutMs + (request.waitMs ?? 0)));
    const { response, body } = await lossless(signal, async () => {
      const response = await this.#fetch(request, authorization, AbortSignal.any([signal, limit]));
      return { response, body: new Uint8Array(await response.arrayBuffer()) };
    });
    if (response.ok) return body;
    // A server that was started again has written a new key file.
    if (response.status === 401 && this.#authorization() !== authorization) {
      return this.#once(request, signal);
    }
    throw problemOf(response, body);
  }

  #fetch(request: HttpRequest, authorization: string | undefined, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { accept: "application/json", ...request.headers };
    if (authorization !== undefined) headers.authorization = authorization;
    if (request.body !== undefined) headers["content-type"] = "application/json";
    const { method, body = null } = request;
    return fetch(`${this.url}${request.path}`, { method, body, headers, signal, redirect: "error" });
  }

  /** Yields the messages of an event stream behind a cursor. Throws Lost when it is cut. */
  async *events(
    path: string,
    cursor: string | undefined,
    own: AbortSignal,
    opened: () => void,
  ): AsyncGenerator<Record<string, string>, void> {
    const signal = this.signal(own);
    const quiet = new AbortController();
    const timer = setTimeout(() => quiet.abort(new Lost("the stream is silent", true)), QUIET_MS);
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (cursor !== undefined) headers["last-event-id"] = cursor;
    try {
      const both = AbortSignal.any([signal, quiet.signal]);
      const request: HttpRequest = { method: "GET", path, headers };
      const response = await lossless(signal, () => this.#fetch(request, this.#authorization(), both));
      if (!response.ok) {
        throw problemOf(response, new Uint8Array(await lossless(signal, () => response.arrayBuffer())));
      }
      opened();
      yield* messages(response, signal, () => timer.refresh());
    } finally {
      clearTimeout(timer);
      quiet.abort();
    }
  }
}

/** Yields the messages of a response: their fields by name. */
async function* messages(
  response: Response,
  signal: AbortSignal,
  heard: () => void,
): AsyncGenerator<Record<string, string>, void> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let message: Record<string, string> = {};
  for (;;) {
    const { value, done } = await lossless(signal, () => reader.read());
    if (done) return;
    heard();
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() as string;
    for (const line of lines) {
      const [, name, text] = /^([^:\r]*):? ?(.*?)\r?$/.exec(line) ?? [];
      if (name) message[name] = text ?? "";
      if (line.trim() === "") {
        if (Object.keys(message).length > 0) yield message;
        message = {};
      }
    }
  }
}

/** Runs a step of a request. A failure that is not the caller's abort becomes Lost. */
async function lossless<T>(signal: AbortSignal, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const cause = (error as Error).cause as { code?: string; message?: string } | undefined;
    const text = cause?.message || cause?.code || (error as Error).message;
    throw new Lost(text, !NOT_SENT.includes(cause?.code ?? ""));
  }
}

/** Returns the function that gives the header: of a key, or of the key file of a local server. */
function authorization(options: TransportOptions, isLocal: boolean): () => string | undefined {
  const key = options.key || (options.keyFile === undefined ? process.env.ONWARD_KEY : "");
  if (key) return () => `Bearer ${key}`;
  const store = (process.env.ONWARD_STORE || "onward.db").replace(/^sqlite:(\/\/)?/, "");
  const path = options.keyFile ?? (isLocal ? `${store}.serve-key` : undefined);
  if (path === undefined) return () => undefined;
  return () => {
    try {
      // The server writes the file at each start.
      return readFileSync(path, "utf8")
        .trim()
        .replace(/^Authorization: /, "");
    } catch {
      return undefined; // the server says then that a credential is missing
    }
  };
}

/** Returns the error of a response, which may be that of a proxy. */
function problemOf(response: Response, body: Uint8Array): Problem {
  const { status } = response;
  let fields: Record<string, string> = {};
  try {
    fields = JSON.parse(Buffer.from(body).toString()) ?? {};
  } catch {
    // It is not a problem of the server.
  }
  if (fields.code === undefined) {
    const detail = STATUS_CODES[status] ?? "an unknown status";
    fields = { code: `http_${status}`, detail, remedy: "look at the proxy, or at the url" };
  }
  const after = response.headers.get("retry-after");
  const Class = CLASSES[status] ?? Problem;
  return new Class(fields.code as string, fields.detail ?? "", fields.remedy ?? "", {
    status,
    field: fields.field,
    requestId: fields.request_id,
    retryAfterMs: after !== null && /^\d+$/.test(after) ? 1_000 * Number(after) : undefined,
  });
}

/** Returns true if a watch may try again after an error. */
export function isPassing(problem: Problem): boolean {
  return REPEATED.includes(problem.status);
}

function mayRepeat(problem: Problem, request: HttpRequest): boolean {
  if (!isPassing(problem)) return false;
  // A server that is stopping, or has no room, did nothing.
  return request.isRepeatable !== false || problem.status === 429 || problem.code === "stopping";
}
