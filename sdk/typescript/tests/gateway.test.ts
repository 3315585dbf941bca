/**
 * The worker against the real gateway: results, stops, and processes that are killed.
 *
 * The program is ONWARD_BIN, or the one of the last debug build. Without one the tests are skipped,
 * but fail where ONWARD_REQUIRE_BACKENDS is set.
 */

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { PROJECT } from "./project.js";

const PROGRAM = process.env.ONWARD_BIN ?? fileURLToPath(new URL("target/debug/onward", PROJECT));
const COUNT = fileURLToPath(new URL("count-worker.js", import.meta.url));
const EXAMPLES = fileURLToPath(new URL("sdk/typescript/build/examples/", PROJECT));
const TASKS = 400;

/** The exit code of `onward work` after a signal: the work is kept. */
const STOPPED = 0;

const isMissing = !existsSync(PROGRAM) && process.env.ONWARD_REQUIRE_BACKENDS === undefined;
const options = { skip: isMissing ? `no program at ${PROGRAM}` : false, timeout: 180_000 };

/** Waits until a condition has a true value and returns it. */
async function waitFor<T>(condition: () => T, text: string, seconds = 60): Promise<NonNullable<T>> {
  const until = performance.now() + seconds * 1000;
  for (;;) {
    const value = condition();
    if (value) return value;
    assert.ok(performance.now() < until, `not within ${seconds} s: ${text}`);
    await setTimeout(20);
  }
}

/** A store, and `onward work --app` on it. */
class Gateway {
  readonly folder = mkdtempSync(join(tmpdir(), "onward-gateway-"));
  readonly #pidFile = join(this.folder, "pid");
  readonly #worker: string;
  readonly #workers: ChildProcess[] = [];
  #process: ChildProcess | null = null;

  constructor(context: TestContext, worker = COUNT) {
    this.#worker = worker;
    context.after(() => {
      for (const child of [this.#process, ...this.#workers]) child?.kill("SIGKILL");
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  get #environment(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      ONWARD_STORE: join(this.folder, "onward.db"),
      PID_FILE: this.#pidFile,
      HOLD_FILE: join(this.folder, "hold"),
      LEDGER: join(this.folder, "ledger"),
    };
  }

  /** Starts the gateway, which starts the worker. */
  start(): void {
    this.#process = this.#spawn(PROGRAM, ["work", "--app", `${process.execPath} ${this.#worker}`]);
  }

  /** Starts the gateway for workers that connect. */
  listen(): void {
    this.#process = this.#spawn(PROGRAM, [
      "work",
      "--listen",
      `ipc://${this.folder}/gateway`,
      "--lease",
      "5s",
    ]);
  }

  /** Starts a worker that connects. */
  connectWorker(): void {
    this.#workers.push(this.#spawn(process.execPath, [this.#worker]));
  }

  #spawn(program: string, args: string[]): ChildProcess {
    const log = openSync(join(this.folder, "log"), "a");
    const env = { ...this.#environment, ONWARD_GATEWAY: `ipc://${this.folder}/gateway` };
    return spawn(program, args, { env, stdio: ["ignore", log, log] });
  }

  /** Kills the gateway and leaves the workers alive. */
  async killAlone(): Promise<void> {
    const ended = once(this.#process as ChildProcess, "exit");
    this.#process?.kill("SIGKILL");
    await ended;
  }

  /** Runs a command on the store and returns its output. */
  onward(args: string[], input = ""): string {
    return execFileSync(PROGRAM, args, { env: this.#environment, input, cwd: this.folder, encoding: "utf8" });
  }

  count(state: string): number {
    return JSON.parse(this.onward(["task", "count", "--json", "--state", state])).tasks;
  }

  submit(count: number): void {
    const lines = Array.from({ length: count }, (_, n) => `${n}\n`).join("");
    this.onward(["submit", "--kind", "count", "--lines"], lines);
  }

  async workerPid(): Promise<number> {
    const text = await waitFor(
      () => existsSync(this.#pidFile) && readFileSync(this.#pidFile, "utf8"),
      "a worker",
    );
    return Number(text);
  }

  async killWorker(): Promise<void> {
    const pid = await this.workerPid();
    unlinkSync(this.#pidFile);
    process.kill(pid, "SIGKILL");
  }

  /** Kills the gateway, and waits until its child has exited. */
  async kill(): Promise<void> {
    const pid = await this.workerPid();
    unlinkSync(this.#pidFile);
    this.#process?.kill("SIGKILL");
    await waitFor(() => !lives(pid), "the child of a killed gateway exits", 10);
  }

  async stop(): Promise<number> {
    const ended = once(this.#process as ChildProcess, "exit");
    this.#process?.kill("SIGTERM");
    return (await ended)[0];
  }

  async completes(count: number): Promise<void> {
    await waitFor(() => this.count("completed") >= count, `${count} tasks complete`, 120);
  }

  /** Checks that every task completed, by the events of the store, and none twice. */
  async assertEachCompletedOnce(count: number): Promise<void> {
    await this.completes(count);
    const events = this.onward(["events", "--json"]).trim().split("\n");
    const completed = events.map((line) => JSON.parse(line)).filter(({ change }) => change === "completed");
    assert.equal(new Set(completed.map(({ task }) => task)).size, count);
    assert.equal(completed.length, count);
  }
}

/** Returns whether a process runs; one that has ended and is not collected does not. */
function lives(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) !== "Z";
  } catch {
    return false;
  }
}

test("a task runs and its result is kept", options, async (context) => {
  const gateway = new Gateway(context);
  gateway.start();
  assert.equal(gateway.onward(["submit", "--kind", "count", "--wait", "41"]).trim(), "41");
  assert.equal(await gateway.stop(), STOPPED);
});

test("killed workers lose nothing and complete nothing twice", options, async (context) => {
  const gateway = new Gateway(context);
  gateway.submit(TASKS);
  gateway.start();
  for (let goal = 40; goal < TASKS - 100; goal += 80) {
    await gateway.completes(goal);
    await gateway.killWorker();
  }
  await gateway.assertEachCompletedOnce(TASKS);
});

test("killed gateways lose nothing and complete nothing twice", options, async (context) => {
  const gateway = new Gateway(context);
  gateway.submit(TASKS);
  gateway.start();
  for (let goal = 40; goal < TASKS - 100; goal += 80) {
    await gateway.completes(goal);
    await gateway.kill();
    gateway.start();
  }
  await gateway.assertEachCompletedOnce(TASKS);
});

test(
  "connected workers outlive killed gateways, and killed workers are replaced",
  options,
  async (context) => {
    const gateway = new Gateway(context);
    gateway.submit(TASKS);
    gateway.listen();
    gateway.connectWorker();
    await gateway.completes(40);
    const first = await gateway.workerPid();
    await gateway.killAlone();
    gateway.listen();
    await gateway.completes(160);
    assert.ok(lives(first), "the worker connects to the next gateway");
    await gateway.killWorker();
    gateway.connectWorker();
    await gateway.completes(240);
    await gateway.killAlone();
    gateway.listen();
    await gateway.assertEachCompletedOnce(TASKS);
  },
);

test("a paused worker completes nothing twice", options, async (context) => {
  const gateway = new Gateway(context);
  gateway.submit(TASKS);
  gateway.start();
  await gateway.completes(40);
  const pid = await gateway.workerPid();
  process.kill(pid, "SIGSTOP");
  gateway.count("completed");
  process.kill(pid, "SIGCONT");
  await gateway.assertEachCompletedOnce(TASKS);
});

test("a cancelled task stops its handler", options, async (context) => {
  const gateway = new Gateway(context);
  gateway.start();
  gateway.onward(["submit", "--kind", "hold"]);
  await waitFor(() => existsSync(join(gateway.folder, "hold")), "the handler begins");
  gateway.onward(["task", "cancel", "1"]);
  await waitFor(() => gateway.count("cancelled") === 1, "the task is cancelled");
  assert.equal(await gateway.stop(), STOPPED);
});

test("a stopped gateway drains its worker", options, async (context) => {
  const gateway = new Gateway(context);
  gateway.submit(100);
  gateway.start();
  await gateway.completes(10);
  assert.equal(await gateway.stop(), STOPPED);
  assert.equal(gateway.count("running"), 0);
  assert.equal(gateway.count("failed"), 0);
});

test("the example of checksums", options, async (context) => {
  const gateway = new Gateway(context, join(EXAMPLES, "checksums.js"));
  const files = join(gateway.folder, "files");
  mkdirSync(files);
  writeFileSync(join(files, "a"), "a\n");
  writeFileSync(join(files, "b"), "b\n");
  gateway.start();
  const out = gateway.onward(["submit", "--kind", "checksums", "--wait", JSON.stringify({ folder: files })]);
  assert.match(JSON.parse(out)[join(files, "a")], /^87428fc522803d31/);
});

test("the example of an order is undone when it fails", options, async (context) => {
  const gateway = new Gateway(context, join(EXAMPLES, "order.js"));
  const template = fileURLToPath(new URL("sdk/typescript/examples/order.yaml", PROJECT));
  gateway.start();
  const done = gateway.onward(["run", template, "--input", "order=7", "--input", "amount=40"]);
  assert.deepEqual(JSON.parse(done), { parcel: "parcel-7" });
  assert.throws(() => gateway.onward(["run", template, "--input", "order=8", "--input", "amount=-40"]));
  const effects = readFileSync(join(gateway.folder, "ledger"), "utf8").trim().split("\n");
  assert.deepEqual(
    effects.map((line) => JSON.parse(line).what),
    ["reserved", "charged", "shipped", "reserved", "released"],
  );
});
