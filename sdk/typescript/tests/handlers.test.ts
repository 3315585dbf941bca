import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, Cancelled, Fail, Handler, OnwardError, RetryLater, Worker } from "../src/index.js";
import { run } from "../src/testing.js";
import { object, string } from "./schemas.js";

const silent = { debug() {}, info() {}, warn() {}, error() {} };

test("a handler gets its payload and its result is JSON", async () => {
  const app = new Worker();
  app.handler("greet", { input: string }, (name) => `Hello, ${name}`);
  assert.equal((await run(app, "greet", "Ada")).value(), "Hello, Ada");
});

test("a handler of bytes gets and returns bytes", async () => {
  const app = new Worker();
  app.handler("reverse", { input: bytes, output: bytes }, (payload) => Uint8Array.from(payload).reverse());
  const outcome = await run(app, "reverse", new Uint8Array([1, 2]));
  assert.deepEqual([...(outcome.value(bytes) as Uint8Array)], [2, 1]);
});

test("an object of a class handles its kind, with its options", async () => {
  class Sum extends Handler<Record<string, number>> {
    readonly kind = "sum";
    override readonly input = object;
    override readonly retry = 3;
    call(numbers: Record<string, number>): number {
      return Object.values(numbers).length;
    }
  }
  const app = new Worker();
  app.register(new Sum());
  assert.equal((await run(app, "sum", { a: 1 })).value(), 1);
  assert.deepEqual(app.entryOf("sum").fields.retry, {
    attempts: 3,
    backoff: "jitter",
    initial_ms: 1000,
    factor: 2,
    maximum_ms: 600_000,
  });
});

test("middleware runs around the handler, the first one outermost", async () => {
  const app = new Worker();
  const order: string[] = [];
  for (const name of ["outer", "inner"]) {
    app.use(async (ctx, next) => {
      order.push(`${name} begins`);
      ctx.local.set(name, true);
      const result = await next();
      order.push(`${name} sees ${result}`);
    });
  }
  app.handler("work", (_, ctx) => ctx.local.size);
  assert.equal((await run(app, "work")).value(), 2);
  assert.deepEqual(order, ["outer begins", "inner begins", "inner sees 2", "outer sees 2"]);
});

test("middleware may replace an error, but not swallow it", async () => {
  const app = new Worker();
  app.use(async (ctx, next) => {
    try {
      await next();
    } catch {
      if (ctx.kind === "replaced") throw new Fail("replaced");
    }
  });
  for (const kind of ["replaced", "swallowed"]) {
    app.handler(kind, () => {
      throw new TypeError("original");
    });
  }
  assert.equal((await run(app, "replaced")).fields.message, "replaced");
  assert.equal((await run(app, "swallowed")).fields.message, "original");
});

test("middleware that does not call `next` fails the attempt", async () => {
  const app = new Worker();
  app.use(() => undefined);
  app.handler("work", () => 1);
  assert.match(String((await run(app, "work")).fields.message), /did not call `next`/);
});

test("the state of the worker is in every context", async () => {
  const app = new Worker({ state: { greeting: "Hi" } });
  app.handler("greet", (_, ctx) => ctx.state.greeting);
  assert.equal((await run(app, "greet")).value(), "Hi");
});

test("RetryLater carries its delay, and whether the attempt counts", async () => {
  const app = new Worker();
  app.handler("busy", () => {
    throw new RetryLater("busy", { afterMs: 1500.4, counts: false });
  });
  const { fields } = await run(app, "busy");
  assert.equal(fields.retry_after_ms, 1500);
  assert.equal(fields.counts, false);
});

test("a crash carries its class and stack, and leaves the retry to the policy", async () => {
  const app = new Worker();
  app.handler("crash", () => {
    throw new TypeError("no");
  });
  const { fields } = await run(app, "crash");
  assert.equal(fields.class, "TypeError");
  assert.equal(fields.retry, undefined);
  assert.match((fields.details as { stack: string }).stack, /handlers\.test/);
});

test("details over their bound are left out, and said so", async () => {
  const app = new Worker();
  app.handler("fail", () => {
    throw new Fail("no", { details: "x".repeat(5000) });
  });
  assert.deepEqual((await run(app, "fail")).fields.details, {
    omitted: "the details had 5002 bytes, more than 4096",
  });
});

test("a thrown value that is no error becomes a failure", async () => {
  const app = new Worker();
  app.handler("throw", () => {
    throw { code: 7 };
  });
  assert.equal((await run(app, "throw")).fields.message, '{"code":7}');
});

test("a decision outside its choices fails the step", async () => {
  const app = new Worker();
  app.decision("route", { choices: ["a"] }, (step) => step.input as "a");
  assert.deepEqual((await run(app, "route", { input: "a" })).value(), { chosen: ["a"] });
  assert.match(String((await run(app, "route", { input: "b" })).fields.message), /its choices are a/);
});

test("a step reads results of its ancestors by name", async () => {
  const app = new Worker();
  app.handler("step", (name, ctx) => [name && ctx.step.input, ctx.step.result("before", string)]);
  const payload = { input: 7, results: { before: "x" } };
  assert.deepEqual((await run(app, "step", payload)).value(), [7, "x"]);
  const missing = await run(app, "step", { input: 7, results: { other: "x" } });
  assert.match(String(missing.fields.message), /`before`.*other/);
});

test("a batch continues after its checkpoint, and keeps one every so many positions", async () => {
  const app = new Worker();
  const seen: number[] = [];
  app.batch("sum", { every: 2, initial: [] as number[] }, async (batch) => {
    for await (const position of batch) {
      seen.push(position);
      batch.partial.push(position);
    }
  });
  const outcome = await run(app, "sum", { from: 0, to: 5 }, { checkpoint: { position: 2, partial: [0, 1] } });
  assert.deepEqual(seen, [2, 3, 4]);
  assert.deepEqual(outcome.value(), [0, 1, 2, 3, 4]);
  assert.deepEqual(outcome.checkpoints, [{ position: 4, partial: [0, 1, 2, 3] }]);
});

test("a batch without a cursor fails without a retry", async () => {
  const app = new Worker();
  app.batch("sum", {}, () => 0);
  assert.match(String((await run(app, "sum", { from: 5, to: 1 })).fields.message), /must be/);
});

test("an attempt that is asked to stop aborts its signal, with the reason", async () => {
  const app = new Worker();
  app.handler("hold", (_, ctx) => ctx.sleep(60_000));
  const outcome = await run(app, "hold", null, { stop: "cancelled" });
  assert.equal(outcome.outcome, "cancelled");
  assert.ok(outcome.error instanceof Cancelled && outcome.error.why === "cancelled");
});

for (const [why, outcome] of [
  ["preempted", "release"],
  ["stopping", "release"],
  ["timeout", "fail"],
  ["lost", "lost"],
] as const) {
  test(`a handler that follows the stop \`${why}\` ends with \`${outcome}\``, async () => {
    const app = new Worker();
    app.handler("hold", (_, ctx) => ctx.sleep(60_000));
    assert.equal((await run(app, "hold", null, { stop: why })).outcome, outcome);
  });
}

test("progress and checkpoints are recorded, and a checkpoint is read by a schema", async () => {
  const app = new Worker();
  app.handler("work", async (_, ctx) => {
    ctx.progress(0.5, "half");
    ctx.progress({ done: 5, total: 10 });
    await ctx.checkpoint({ a: 1 });
    return ctx.lastCheckpoint(object);
  });
  const outcome = await run(app, "work", null, { logger: silent });
  assert.deepEqual(outcome.value(), { a: 1 });
  assert.deepEqual(outcome.progress[1], { fraction: 0.5, message: "half", done: 5, total: 10 });
  assert.deepEqual(outcome.checkpoints, [{ a: 1 }]);
});

test("spawned and submitted tasks are recorded with their options", async () => {
  const app = new Worker();
  app.handler("parent", async (_, ctx) => {
    ctx.spawn("child", { n: 1 }, { priority: 200, tags: { a: "b" } });
    await ctx.submit("other", "x", { key: "k", delayMs: 50, onDuplicate: "requeue" });
    return ctx.awaitChildren({ at: 1 }, { failFast: true });
  });
  const outcome = await run(app, "parent");
  assert.equal(outcome.outcome, "children");
  assert.equal(outcome.fields.on_failure, "fail");
  assert.deepEqual(outcome.spawned[0]?.fields, { kind: "child", priority: 200, tags: { a: "b" } });
  const expected = { kind: "other", key: "k", on_duplicate: "requeue", delay_ms: 50, payload: 0 };
  assert.deepEqual(outcome.submitted[0]?.fields, expected);
});

test("results, children and items come from the answers of the test", async () => {
  const app = new Worker();
  app.handler("ask", async (_, ctx) => {
    const children = await ctx.children();
    const items = await ctx.items();
    return [(await ctx.result("7")).state, children.map((child) => child.value()), items.length];
  });
  const outcome = await run(app, "ask", null, {
    answer: ({ what, after }) => {
      if (what === "result") return { fields: { state: "running" } };
      if (what === "items")
        return { fields: { items: [{ task: "1", payload: 0 }] }, payloads: [Buffer.from("1")] };
      const child = { task: after ? "3" : "2", kind: "c", state: "completed", payload: 0 };
      const fields = after ? { children: [child] } : { children: [child], next: "2" };
      return { fields, payloads: [Buffer.from(after ? "30" : "20")] };
    },
  });
  assert.deepEqual(outcome.value(), ["running", [20, 30], 1]);
});

test("a payload that the schema of its kind rejects is not submitted", async () => {
  const app = new Worker();
  const child = app.handler("child", { input: string }, () => null);
  app.handler("parent", (_, ctx) => ctx.spawn(child, 7 as unknown as string));
  assert.match(String((await run(app, "parent")).fields.message), /payload of `child` is not valid/);
});

const beyond: [string, (app: Worker) => unknown][] = [
  ["limit", (app) => app.handler("k", { limit: 0 }, () => 0)],
  ["timeoutMs", (app) => app.handler("k", { timeoutMs: 0 }, () => 0)],
  ["attempts", (app) => app.handler("k", { retry: 0 }, () => 0)],
  ["factor", (app) => app.handler("k", { retry: { factor: 0.5 } }, () => 0)],
  ["kind", (app) => app.handler("k".repeat(129), () => 0)],
  ["every", (app) => app.batch("k", { every: 0 }, () => 0)],
  ["slots", () => new Worker({ slots: 1025 })],
  ["prefetch", () => new Worker({ slots: 1000, prefetch: 25 })],
  ["graceMs", () => new Worker({ graceMs: -1 })],
];
for (const [name, make] of beyond) {
  test(`an option out of its range is refused by its name: ${name}`, () => {
    assert.throws(() => make(new Worker()), new RegExp(name));
  });
}

test("a kind has one handler", () => {
  const app = new Worker();
  app.handler("k", () => 0);
  assert.throws(() => app.handler("k", () => 0), /has a handler already/);
});

test("a test that asks for the result of a failed attempt gets its error", async () => {
  const app = new Worker();
  app.handler("later", (_, ctx) => ctx.later());
  const outcome = await run(app, "later");
  assert.throws(() => outcome.value(), OnwardError);
});
