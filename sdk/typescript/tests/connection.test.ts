/** The thread of the connection, and errors at the start, in processes of their own. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "../src/index.js";
import { parseAddress } from "../src/internal/address.js";
import { Decoder, encode, type Header, type Message } from "../src/internal/frames.js";
import { GREETING, Zmtp } from "../src/internal/zmtp.js";

const WORKER = fileURLToPath(new URL("count-worker.js", import.meta.url));
const READY_OF_GATEWAY = Buffer.from("041c0552454144590b536f636b65742d5479706500000006524f55544552", "hex");
const WELCOME = { t: "welcome", protocol: 1, session: "s", lease_ms: 400, heartbeat_ms: 100 };

/** A gateway for one worker. It answers beats and keeps what it received. */
class Peer {
  readonly received: Header[] = [];
  readonly results: string[] = [];
  readonly server: Server;
  #socket: Socket | null = null;
  #waiting: (() => void)[] = [];

  constructor() {
    this.server = createServer((socket) => {
      socket.write(GREETING);
      socket.write(READY_OF_GATEWAY);
      this.serve(socket, new Zmtp());
    });
  }

  /** Serves a connection; on the carrier child there is no ZMTP. */
  serve(socket: Socket, zmtp: Zmtp | null): void {
    const decoder = new Decoder(1_048_576);
    this.#socket = socket;
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      for (const data of zmtp?.feed(chunk).data ?? [chunk])
        decoder.feed(data, (message) => this.#receive(message));
    });
  }

  #receive({ header, payloads }: Message): void {
    this.received.push(header);
    if (header.t === "hello") this.send(WELCOME);
    if (header.t === "beat") this.send({ t: "alive", n: header.n });
    if (header.t === "end") this.results.push(...payloads.map((payload) => Buffer.from(payload).toString()));
    for (const wake of this.#waiting.splice(0)) wake();
  }

  send(header: Header, ...payloads: Uint8Array[]): void {
    this.#socket?.write(encode({ ...header }, payloads));
  }

  /** Waits for a message of this type, counted from the start. */
  async until(type: string): Promise<Header> {
    for (;;) {
      const found = this.received.find(({ t }) => t === type);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  count(type: string): number {
    return this.received.filter(({ t }) => t === type).length;
  }
}

const folder = mkdtempSync(join(tmpdir(), "onward-test-"));
const running: ChildProcess[] = [];
after(() => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a worker that connects to a peer. */
async function start(name: string): Promise<Peer> {
  const peer = new Peer();
  const path = join(folder, name);
  peer.server.listen(path);
  await once(peer.server, "listening");
  peer.server.unref();
  const child = spawn(process.execPath, [WORKER], {
    env: { ...process.env, ONWARD_GATEWAY: `ipc://${path}` },
    stdio: ["ignore", "ignore", "inherit"],
  });
  running.push(child);
  await peer.until("grant");
  return peer;
}

function task(kind: string): Header {
  return { t: "tasks", tasks: [{ task: "1", fence: "1", kind, attempt: 1, payload: 0 }] };
}

test("a handler that computes for longer than the lease keeps it", { timeout: 30_000 }, async () => {
  const peer = await start("compute");
  const before = peer.count("beat");
  peer.send(task("compute"), Buffer.from("1500"));
  const end = await peer.until("end");
  assert.equal((end.ends as Header[])[0]?.outcome, "ok");
  assert.ok(peer.count("beat") - before >= 8, `${peer.count("beat") - before} beats in 1.5 s`);
  assert.equal(peer.count("hello"), 1);
});

test("a program that a handler starts does not inherit the connection", { timeout: 30_000 }, async () => {
  const peer = new Peer();
  const child = spawn(process.execPath, [WORKER], {
    env: { ...process.env, ONWARD_GATEWAY: "child", ONWARD_FD: "3" },
    stdio: ["ignore", "ignore", "inherit", "pipe"],
  });
  running.push(child);
  peer.serve(child.stdio[3] as Socket, null);
  await peer.until("grant");
  peer.send(task("descriptors"), Buffer.from("null"));
  await peer.until("end");
  // 0 to 2 are the pipes to `ls` itself.
  assert.match(peer.results[0] ?? "", / 1 -> socket:/);
  assert.doesNotMatch(peer.results[0] ?? "", / ([3-9]|\d{2,}) -> socket:/);
});

async function exitOf(environment: Record<string, string>): Promise<{ code: number | null; log: string }> {
  const { ONWARD_GATEWAY: _, ...inherited } = process.env;
  const child = spawn(process.execPath, [WORKER], {
    env: { ...inherited, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.push(child);
  let log = "";
  child.stderr.on("data", (data) => {
    log += data;
  });
  const [code] = await once(child, "close");
  return { code, log };
}

test("without a gateway the worker exits with 1 and names the remedy", async () => {
  const { code, log } = await exitOf({});
  assert.equal(code, 1);
  assert.match(log, /onward work --app/);
});

test("a descriptor that is no socket ends the worker with 1", async () => {
  const { code, log } = await exitOf({ ONWARD_GATEWAY: "child", ONWARD_FD: "77" });
  assert.equal(code, 1);
  assert.match(log, /ONWARD_FD is 77/);
});

for (const [address, rule] of [
  ["tcp://10.0.0.1:7000", /not on loopback/],
  ["tcp://127.0.0.1", /tcp:\/\/HOST:PORT/],
  ["tcp://127.0.0.1:70000", /tcp:\/\/HOST:PORT/],
  ["http://gateway.example", /not on loopback/],
  ["https://gateway.example?key=1", /not an address/],
  ["ftp://localhost", /not an address/],
  ["ipc://", /not an address/],
] as const) {
  test(`refuses the address ${address}`, () => {
    assert.throws(() => parseAddress(address, {}), rule);
  });
}

for (const [address, expected] of [
  ["child", { scheme: "child", descriptor: 3 }],
  ["ipc:///run/onward.sock", { scheme: "ipc", path: "/run/onward.sock" }],
  ["tcp://[::1]:7000", { scheme: "tcp", host: "::1", port: 7000 }],
  ["tcp://localhost:7000", { scheme: "tcp", host: "localhost", port: 7000 }],
  ["http://[::1]:7070", { scheme: "http", url: "http://[::1]:7070" }],
  ["https://gateway.example/onward/", { scheme: "http", url: "https://gateway.example/onward" }],
] as const) {
  test(`reads the address ${address}`, () => {
    assert.deepEqual(parseAddress(address, {}), expected);
  });
}

test("a worker without handlers is refused before it connects", async () => {
  await assert.rejects(new Worker({ gateway: "child" }).serve(), /no handler/);
});
