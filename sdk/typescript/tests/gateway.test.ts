/**
 * The worker against the real gateway: results, stops, and processes that are killed.
 *
 * The program is ONWARD_BIN, or the one of the last debug build. Without one the tests are skipped,
 * but fail where ONWARD_REQUIRE_BACKENDS is set.
 */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Gateway, lives, options, waitFor } from "./gateway-process.js";
import { PROJECT } from "./project.js";

const COUNT = fileURLToPath(new URL("count-worker.js", import.meta.url));
const EXAMPLES = fileURLToPath(new URL("sdk/typescript/build/examples/", PROJECT));
const TASKS = 400;

/** The exit code of `onward work` after a signal: the work is kept. */
const STOPPED = 0;

test("a task runs and its result is kept", options, async (context) => {
  const gateway = new Gateway(context, COUNT);
  gateway.start();
  assert.equal(gateway.onward(["submit", "--kind", "count", "--wait", "41"]).trim(), "41");
  assert.equal(await gateway.stop(), STOPPED);
});

test("killed workers lose nothing and complete nothing twice", options, async (context) => {
  const gateway = new Gateway(context, COUNT);
  gateway.submit(TASKS);
  gateway.start();
  for (let goal = 40; goal < TASKS - 100; goal += 80) {
    await gateway.completes(goal);
    await gateway.killWorker();
  }
  await gateway.assertEachCompletedOnce(TASKS);
});

test("killed gateways lose nothing and complete nothing twice", options, async (context) => {
  const gateway = new Gateway(context, COUNT);
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
    const gateway = new Gateway(context, COUNT);
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
  const gateway = new Gateway(context, COUNT);
  gateway.submit(TASKS);
  gateway.start();
  await gateway.completes(40);
  const pid = await gateway.workerPid();
  process.kill(pid, "SIGSTOP");
  gateway.count("--state", "completed");
  process.kill(pid, "SIGCONT");
  await gateway.assertEachCompletedOnce(TASKS);
});

test("a cancelled task stops its handler", options, async (context) => {
  const gateway = new Gateway(context, COUNT);
  gateway.start();
  gateway.onward(["submit", "--kind", "hold"]);
  await waitFor(() => existsSync(join(gateway.folder, "hold")), "the handler begins");
  gateway.onward(["task", "cancel", "1"]);
  await waitFor(() => gateway.count("--state", "cancelled") === 1, "the task is cancelled");
  assert.equal(await gateway.stop(), STOPPED);
});

test("a stopped gateway drains its worker", options, async (context) => {
  const gateway = new Gateway(context, COUNT);
  gateway.submit(100);
  gateway.start();
  await gateway.completes(10);
  assert.equal(await gateway.stop(), STOPPED);
  assert.equal(gateway.count("--state", "running"), 0);
  assert.equal(gateway.count("--state", "failed"), 0);
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
