/** The driver of sdk/conformance/clients.py: makes the calls of lines of JSON. */

import { createInterface } from "node:readline";
import type { Event, NewTask } from "../src/index.js";
import { Client, TaskOutcome } from "../src/index.js";

/** Times of the cases are in seconds. */
const TIMES = [
  "keep_key",
  "delay",
  "ttl",
  "timeout",
  "heartbeat",
  "within",
  "initial",
  "increment",
  "maximum",
  "retry_for",
];

type Json = Record<string, unknown>;

function camel(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns arguments with the names, times and bytes of this package. */
function options(args: Json): Json {
  const entries = Object.entries(args).map(([name, value]): [string, unknown] => {
    if (name === "payload") return [name, bytesOr(value)];
    if (name === "retry" && typeof value === "object") return [name, options(value as Json)];
    return TIMES.includes(name) ? [`${camel(name)}Ms`, 1_000 * (value as number)] : [camel(name), value];
  });
  return Object.fromEntries(entries);
}

function bytesOr(value: unknown): unknown {
  const text = (value as Json | null)?.$base64;
  return typeof text === "string" ? new Uint8Array(Buffer.from(text, "base64")) : value;
}

/** Returns a result with the names of the cases. */
function plain(result: unknown): unknown {
  if (Array.isArray(result)) return result.map(plain);
  if (result instanceof TaskOutcome) {
    const payload = result.payload === null ? null : Buffer.from(result.payload).toString();
    return { task: result.task, state: result.state, error: result.error, payload };
  }
  if (typeof result !== "object" || result === null) return result ?? null;
  return Object.fromEntries(Object.entries(result).map(([name, value]) => [snake(name), plain(value)]));
}

function raised(error: Error): Json {
  const { name, message, ...fields } = error as Error & { requestId?: string };
  return { ...fields, error: name, text: message, request_id: fields.requestId };
}

type Named = { task: string; kind: string; payload: unknown; workflow: string };

async function call(client: Client, name: string, args: Json): Promise<unknown> {
  const { task, kind, payload, workflow, ...others } = options(args) as Named;
  switch (name) {
    case "submit":
      return client.submit(kind, payload, others);
    case "submit_and_wait":
      return client.submitAndWait(kind, payload, others);
    case "submit_many":
      return client.submitMany((args.tasks as Json[]).map((one) => options(one) as unknown as NewTask));
    case "start":
      return client.start(workflow, payload, others);
    case "start_orchestration":
      return client.startOrchestration(kind, payload, others);
    case "wait":
      return client.wait(task, others);
    case "value":
      return (await client.wait(task, others)).value();
    case "signal":
      return client.signal(task, args.name as string, payload);
    case "watch":
      return watch(client, args);
    default:
      return client[name as "result" | "cancel" | "run" | "query"](task);
  }
}

async function watch(client: Client, { count, ...args }: Json): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of client.watch(args)) {
    events.push(event);
    if (events.length === count) break;
  }
  return events;
}

let client = new Client();
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  let reply: Json;
  try {
    if (message.client !== undefined) {
      client = new Client(options(message.client));
      reply = { value: null };
    } else {
      reply = { value: plain(await call(client, message.call, message.args)) };
    }
  } catch (error) {
    reply = { raised: raised(error as Error) };
  }
  console.log(JSON.stringify(reply));
}
