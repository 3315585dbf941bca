import assert from "node:assert/strict";
import { test } from "node:test";
import { Unavailable } from "../src/index.js";
import { Decoder, encode, type Header } from "../src/internal/frames.js";
import type { Welcome } from "../src/internal/messages.js";
import { Outbox, type Sink } from "../src/internal/outbox.js";

const WELCOME: Welcome = {
  t: "welcome",
  session: "s",
  leaseMs: 60_000,
  heartbeatMs: 20_000,
  maxPayload: 1_048_576,
  features: new Set(["ask", "submit"]),
  gateway: "",
};

/** A connection that keeps the headers of what is sent. */
class Recorder implements Sink {
  readonly headers: Header[] = [];

  send(...messages: Buffer[]): void {
    const decoder = new Decoder(1_048_576);
    for (const data of messages) decoder.feed(data, ({ header }) => this.headers.push(header));
  }

  beat(): void {}

  types(): string[] {
    return this.headers.map(({ t }) => t);
  }
}

const submit = (): Header => ({ t: "submit", tasks: [{ kind: "k" }] });

test("a request fails when no connection will follow, and so does each later one", async () => {
  const outbox = new Outbox(1);
  const waiting = outbox.request(submit(), [], true);
  outbox.abandon();
  await assert.rejects(waiting, Unavailable);
  await assert.rejects(outbox.request(submit(), [], true), Unavailable);
});

test("a submit without a key fails with the connection, because it may have taken effect", async () => {
  const outbox = new Outbox(1);
  outbox.open(WELCOME, new Recorder());
  const waiting = outbox.request(submit(), [], false);
  outbox.flush();
  outbox.close();
  await assert.rejects(waiting, /give the task a key/);
});

test("a request that may be sent twice is sent again on the next connection, until its reply", async () => {
  const outbox = new Outbox(1);
  const [first, second] = [new Recorder(), new Recorder()];
  outbox.open(WELCOME, first);
  const waiting = outbox.request(submit(), [], true);
  outbox.flush();
  outbox.close();
  outbox.open(WELCOME, second);
  outbox.flush();
  assert.deepEqual(first.types(), ["submit", "grant"]);
  assert.deepEqual(second.types(), ["submit", "grant"]);
  outbox.reply({ t: "reply", request: 1, header: { t: "reply" }, payloads: [] });
  assert.equal((await waiting).request, 1);
});

test("a draining worker grants no credit, and says so on a new connection", () => {
  const outbox = new Outbox(4);
  outbox.drain(true);
  const sink = new Recorder();
  outbox.open(WELCOME, sink);
  outbox.flush();
  assert.deepEqual(sink.types(), ["drain"]);
});

test("credit is cumulative: received tasks and the free window", () => {
  const outbox = new Outbox(4);
  const sink = new Recorder();
  outbox.open(WELCOME, sink);
  outbox.flush();
  outbox.receive(3);
  outbox.flush();
  assert.deepEqual(
    sink.headers.map(({ credit }) => credit),
    [4, 7],
  );
});

test("an encoded message has memory of its own, which a thread may take", () => {
  assert.ok(encode({ t: "bye" }).buffer.byteLength < 100);
});
