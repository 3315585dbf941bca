/** Orchestrations of a worker on the real gateway, also while processes are killed. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Nondeterminism, Worker } from "../src/index.js";
import { checkHistory } from "../src/testing.js";
import { Gateway, options, waitFor } from "./gateway-process.js";

const WORKER = fileURLToPath(new URL("order-worker.js", import.meta.url));
const ORDERS = 40;
const ACTIVE = ["blocked", "scheduled", "waiting", "running"];

/** Starts an orchestration and returns its id. */
function start(gateway: Gateway, kind: string, payload: unknown): string {
  const out = gateway.onward(["orchestration", "start", kind, "--payload", JSON.stringify(payload)]);
  return String(out.split(" ")[1]).trim();
}

function signal(gateway: Gateway, task: string, name: string, payload: unknown): void {
  gateway.onward(["orchestration", "signal", task, name, JSON.stringify(payload)]);
}

interface Shown {
  state: string;
  result: string;
}

function show(gateway: Gateway, task: string): Shown {
  return JSON.parse(gateway.onward(["task", "show", task, "--json"])) as Shown;
}

/** Waits for the end of a task and returns it. */
async function ended(gateway: Gateway, task: string): Promise<Shown> {
  await waitFor(() => !ACTIVE.includes(show(gateway, task).state), `task ${task} ends`);
  return show(gateway, task);
}

test("two tasks, a timer and a signal lead to the result", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  const task = start(gateway, "order", { number: 7 });
  signal(gateway, task, "paid", 1999);
  const { state, result } = await ended(gateway, task);
  assert.deepEqual([state, result], ["completed", '"parcel 70 for 1999"']);
});

test("a fault of the code makes a dead letter that names it", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  const shown = await ended(gateway, start(gateway, "stuck", null));
  assert.equal(shown.state, "dead");
  assert.match(JSON.stringify(shown), /TypeError: a fault of the code/);
});

test("a real timer makes a dead letter with the remedy", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  const shown = await ended(gateway, start(gateway, "timer", null));
  assert.equal(shown.state, "dead");
  assert.match(JSON.stringify(shown), /starts a timer \(setTimeout\).*wait with `ctx.sleep`/);
});

test("a child that loses is cancelled", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  const task = start(gateway, "parent", 3);
  await waitFor(() => gateway.count("--kind", "order") === 1, "the child begins");
  signal(gateway, task, "stop", null);
  assert.equal((await ended(gateway, task)).result, "1");
  await waitFor(
    () => gateway.count("--kind", "order", "--state", "cancelled") === 1,
    "the child is cancelled",
  );
});

test("a cancelled orchestration cancels its task", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  const task = start(gateway, "order", { number: 7 });
  await waitFor(() => gateway.count("--kind", "reserve", "--state", "completed") === 1, "it waits");
  gateway.onward(["orchestration", "cancel", task]);
  assert.equal((await ended(gateway, task)).state, "cancelled");
});

test("an orchestration continues as new", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  assert.equal((await ended(gateway, start(gateway, "count", 0))).result, "30");
});

test("a worker that has kept the code gets only new events", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  assert.equal((await ended(gateway, start(gateway, "begins", 5))).result, "1");
});

test("another worker takes over a history that needs several payloads", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  const task = start(gateway, "large", null);
  await waitFor(() => gateway.count("--kind", "lines", "--state", "completed") === 4, "the results");
  await gateway.killWorker();
  await gateway.workerPid();
  signal(gateway, task, "go", null);
  assert.equal((await ended(gateway, task)).result, "1600000");
});

test("an exported history is replayed, and other code differs from it", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  const task = start(gateway, "count", 3);
  await ended(gateway, task);
  const file = join(gateway.folder, "history.json");
  gateway.onward(["orchestration", "export", task, "--output", file]);
  const app = new Worker();
  app.orchestration("count", async (count, ctx) => ctx.task("reserve", { number: count }));
  await checkHistory(app, file);
  const other = new Worker();
  other.orchestration("count", async (_, ctx) => ctx.task("book"));
  await assert.rejects(checkHistory(other, file), Nondeterminism);
});

/** Starts orders and their payments. */
function startOrders(gateway: Gateway): string[] {
  const orders = Array.from({ length: ORDERS }, (_, number) => start(gateway, "order", { number }));
  for (const task of orders) signal(gateway, task, "paid", 5);
  return orders;
}

async function ships(gateway: Gateway, goal: number): Promise<void> {
  const shipped = () => gateway.count("--kind", "order", "--state", "completed") >= goal;
  await waitFor(shipped, `${goal} orders complete`, 120);
}

/** Checks that each order submitted each of its tasks once, and that each completed once. */
async function assertEachOrderOnce(gateway: Gateway, orders: string[]): Promise<void> {
  await ships(gateway, ORDERS);
  for (const [number, task] of orders.entries()) {
    assert.equal(show(gateway, task).result, `"parcel ${number * 10} for 5"`);
  }
  assert.deepEqual([gateway.count("--kind", "reserve"), gateway.count("--kind", "ship")], [ORDERS, ORDERS]);
  await gateway.assertEachCompletedOnce(3 * ORDERS);
}

test("killed workers lose no order and do nothing twice", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  const orders = startOrders(gateway);
  for (const goal of [1, 10, 20]) {
    await ships(gateway, goal);
    await gateway.killWorker();
  }
  await assertEachOrderOnce(gateway, orders);
});

test("killed gateways lose no order and do nothing twice", options, async (context) => {
  const gateway = new Gateway(context, WORKER);
  gateway.start();
  const orders = startOrders(gateway);
  for (const goal of [1, 10, 20]) {
    await ships(gateway, goal);
    await gateway.kill();
    gateway.start();
  }
  await assertEachOrderOnce(gateway, orders);
});
