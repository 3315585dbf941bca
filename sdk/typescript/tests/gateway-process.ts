/** `onward work --app` as a process, for tests against the real gateway. */

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { PROJECT } from "./project.js";

/** The program `onward`. */
export const PROGRAM = process.env.ONWARD_BIN ?? fileURLToPath(new URL("target/debug/onward", PROJECT));

const isMissing = !existsSync(PROGRAM) && process.env.ONWARD_REQUIRE_BACKENDS === undefined;
/** Options of a test that needs the program. */
export const options = { skip: isMissing ? `no program at ${PROGRAM}` : false, timeout: 180_000 };

/** Waits until a condition has a true value and returns it. */
export async function waitFor<T>(condition: () => T, text: string, seconds = 60): Promise<NonNullable<T>> {
  const until = performance.now() + seconds * 1000;
  for (;;) {
    const value = condition();
    if (value) return value;
    assert.ok(performance.now() < until, `not within ${seconds} s: ${text}`);
    await setTimeout(20);
  }
}

/** A store, and `onward work --app` on it. */
export class Gateway {
  readonly folder = mkdtempSync(join(tmpdir(), "onward-gateway-"));
  readonly #pidFile = join(this.folder, "pid");
  readonly #worker: string;
  readonly #workers: ChildProcess[] = [];
  #process: ChildProcess | null = null;

  constructor(context: TestContext, worker: string) {
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

  /** Returns the number of tasks that a filter finds. */
  count(...filter: string[]): number {
    return JSON.parse(this.onward(["task", "count", "--json", ...filter])).tasks;
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
    await waitFor(() => this.count("--state", "completed") >= count, `${count} tasks complete`, 120);
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
export function lives(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) !== "Z";
  } catch {
    return false;
  }
}
