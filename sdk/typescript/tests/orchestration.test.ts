/** Orchestrations without a gateway: replay, guards, and differences from the history. */

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleepReally } from "node:timers/promises";
import { z } from "zod";
import {
  Cancelled,
  Fail,
  Nondeterminism,
  NotDeterministic,
  type Orchestrate,
  SignalTimeout,
  TaskFailed,
  Worker,
} from "../src/index.js";
import { checkEvents, encodeReply } from "../src/orchestration/turn.js";
import { checkHistory, OrchestrationTest } from "../src/testing.js";
import { PROJECT } from "./project.js";

type Code = Orchestrate<undefined, undefined>;

async function begin(code: Code, payload?: unknown): Promise<OrchestrationTest> {
  const app = new Worker();
  return await OrchestrationTest.start(app, app.orchestration("order", code), payload);
}

async function replayOther(of: OrchestrationTest, code: Code): Promise<void> {
  const app = new Worker();
  app.orchestration("order", code);
  const payload = Buffer.from('{"item":"tea"}').toString("base64");
  await checkHistory(app, { kind: "order", payload, events: of.history });
}

const order: Code = async (input, ctx) => {
  const { item } = input as { item: string };
  const shelf = await ctx.task("reserve", { item });
  await ctx.sleep(60_000);
  const cents = await ctx.waitSignal("paid");
  await ctx.task("ship", { shelf });
  return `${cents} cents for shelf ${shelf}`;
};

const kindsOf = (of: OrchestrationTest) => [...of.tasks.values()].map(({ kind }) => kind);

test("tasks, timers and signals lead to the result", async () => {
  const run = await begin(order, { item: "tea" });
  assert.deepEqual(run.payloadOf("reserve"), { item: "tea" });
  await run.complete("reserve", 4);
  await run.advance(60_000);
  assert.deepEqual(run.waits, ["paid"]);
  await run.signal("paid", 1999);
  await run.complete("ship");
  assert.equal(run.result, "1999 cents for shelf 4");
});

test("a signal that comes early is kept", async () => {
  const run = await begin(order, { item: "tea" });
  await run.signal("paid", 5);
  await run.complete("reserve", 1);
  await run.advance(60_000);
  assert.deepEqual(kindsOf(run), ["ship"]);
});

test("a failed task is an error where the code awaits it", async () => {
  const run = await begin(async (_, ctx) => {
    try {
      return await ctx.task("charge");
    } catch (error) {
      assert.ok(error instanceof TaskFailed);
      return `${error.kind} ${error.state}: ${error.error}`;
    }
  });
  await run.fail("charge", "no money", "dead");
  assert.equal(run.result, "charge dead: no money");
});

test("an error that the code lets pass fails the orchestration", async () => {
  const run = await begin(async (_, ctx) => {
    await ctx.task("charge");
  });
  await run.fail("charge", "no money");
  assert.deepEqual([run.state, run.error], ["failed", "TaskFailed: the task `charge` is failed: no money"]);
});

test("a signal that does not come in time is a SignalTimeout, and one in time cancels the timer", async () => {
  const code: Code = async (_, ctx) => {
    try {
      return await ctx.waitSignal("paid", { timeoutMs: 10_000 });
    } catch (error) {
      return error instanceof SignalTimeout ? "late" : "wrong";
    }
  };
  const late = await begin(code);
  await late.advance(10_000);
  assert.equal(late.result, "late");
  const early = await begin(code);
  await early.signal("paid", 7);
  assert.deepEqual([early.result, early.timers.size], [7, 0]);
});

test("all returns the values in the order of the parts", async () => {
  const run = await begin(async (_, ctx) => ctx.all([ctx.task("a"), ctx.task("b"), ctx.sleep(5_000)]));
  await run.complete("b", 2);
  await run.advance(5_000);
  await run.complete("a", 1);
  assert.deepEqual(run.result, [1, 2, null]);
});

test("Promise.all awaits operations, too", async () => {
  const run = await begin(async (_, ctx) => Promise.all([ctx.task("a"), ctx.task("b")]));
  await run.complete("b", 2);
  await run.complete("a", 1);
  assert.deepEqual(run.result, [1, 2]);
});

test("an error in all cancels the others", async () => {
  const run = await begin(async (_, ctx) => {
    await ctx.all([ctx.task("a"), ctx.task("b")]);
  });
  await run.fail("a", "no");
  assert.deepEqual([run.state, run.tasks.size], ["failed", 0]);
  assert.deepEqual(run.history.at(-1), { e: "operation_cancelled", operation: 2 });
});

test("async functions run beside each other", async () => {
  const run = await begin(async (_, ctx) => {
    const two = async (first: string, second: string) => [await ctx.task(first), await ctx.task(second)];
    return await ctx.all([() => two("a", "b"), () => two("c", "d")]);
  });
  for (const kind of ["c", "a", "b", "d"]) await run.complete(kind, kind);
  assert.deepEqual(run.result, [
    ["a", "b"],
    ["c", "d"],
  ]);
});

test("the first wins and the others are cancelled", async () => {
  const run = await begin(async (_, ctx) => ctx.first([ctx.task("slow"), ctx.sleep(1_000)]));
  await run.advance(1_000);
  assert.deepEqual([run.result, run.tasks.size], [[1, null], 0]);
});

test("a function that loses gets Cancelled where it awaits, and may clean up", async () => {
  const run = await begin(async (_, ctx) => {
    const slow = async () => {
      try {
        await ctx.task("slow");
      } catch (error) {
        assert.ok(error instanceof Cancelled);
        await ctx.task("cleanup");
      }
    };
    await ctx.first([slow, ctx.sleep(1_000)]);
    await ctx.waitSignal("go");
  });
  await run.advance(1_000);
  assert.deepEqual(kindsOf(run), ["cleanup"]);
});

test("cancellation is thrown where the code awaits", async () => {
  const run = await begin(async (_, ctx) => {
    try {
      await ctx.task("charge");
    } catch (error) {
      if (error instanceof Cancelled) await ctx.task("refund");
      throw error;
    }
  });
  await run.cancel();
  assert.deepEqual(kindsOf(run), ["refund"]);
  await run.complete("refund");
  assert.equal(run.state, "cancelled");
});

test("a saga undoes its steps in the reverse order", async () => {
  const run = await begin(async (_, ctx) => {
    const undo: (() => PromiseLike<unknown>)[] = [];
    try {
      await ctx.task("reserve");
      undo.push(() => ctx.task("release"));
      await ctx.task("charge");
      undo.push(() => ctx.task("refund"));
      await ctx.task("ship");
    } catch (error) {
      for (const step of undo.reverse()) await step();
      throw error;
    }
  });
  await run.complete("reserve");
  await run.complete("charge");
  await run.fail("ship", "no lorry");
  await run.complete("refund");
  await run.complete("release");
  assert.equal(run.error, "TaskFailed: the task `ship` is failed: no lorry");
});

test("continueAsNew begins again and keeps signals", async () => {
  const run = await begin(async (count, ctx) => {
    await ctx.waitSignal("next");
    return count === 2 ? count : ctx.continueAsNew((count as number) + 1);
  }, 0);
  await run.signal("next");
  assert.deepEqual([run.generation, run.history.length], [1, 1]);
  await run.signal("next");
  await run.signal("next");
  assert.equal(run.result, 2);
});

test("the code sees the same clock and random numbers in each replay", async () => {
  const seen: unknown[] = [];
  const run = await begin(async (_, ctx) => {
    const web = crypto.getRandomValues(new Uint8Array(12)).join();
    seen.push([
      ctx.now(),
      ctx.random(),
      ctx.uuid(),
      new Date(),
      Date.now(),
      performance.now(),
      Math.random(),
    ]);
    seen.push([crypto.randomUUID(), randomUUID(), randomBytes(9).toString("hex"), web]);
    await ctx.sleep(1);
  });
  await run.advance(1);
  assert.equal(seen.length, 4);
  assert.deepEqual(seen.slice(0, 2), seen.slice(2));
  assert.match(String((seen[1] as string[])[0]), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]/);
});

test("code outside of orchestrations has the real clock", async () => {
  await begin(async (_, ctx) => void ctx.now());
  const now = new Date();
  assert.ok(now instanceof Date && now.constructor === Date);
  assert.ok(Math.abs(Date.now() - now.valueOf()) < 60_000 && now.valueOf() !== 1_767_225_600_000);
  await sleepReally(0);
});

const refused: Record<string, [Code, RegExp]> = {
  setTimeout: [async () => new Promise((resolve) => setTimeout(resolve, 0)), /starts a timer/],
  "setTimeout of node:timers/promises": [async () => sleepReally(0), /starts a timer/],
  setInterval: [async () => void setInterval(() => {}, 1), /starts a timer/],
  fetch: [async () => fetch("http://127.0.0.1:1/"), /sends a request/],
  "a socket": [async () => void connect(1, "127.0.0.1").on("error", () => {}), /socket/],
  "a file": [async () => readFile("/dev/null"), /a file/],
};
for (const [name, [code, text]] of Object.entries(refused)) {
  test(`${name} is refused with the remedy`, async () => {
    await assert.rejects(begin(code), (error) => {
      assert.ok(error instanceof NotDeterministic, String(error));
      assert.match(error.message, text);
      assert.match(error.message, /move it into a task, and wait with `ctx.sleep`/);
      return true;
    });
  });
}

test("awaiting what no event ends is refused", async () => {
  await assert.rejects(
    begin(async () => new Promise(() => {})),
    /awaits something that no event of its history ends/,
  );
});

test("continueAsNew whose value is not returned is refused", async () => {
  await assert.rejects(
    begin(async (_, ctx) => void ctx.continueAsNew(1)),
    /write `return ctx.continueAsNew/,
  );
});

test("the test bed finds an operation that was never awaited", async () => {
  await assert.rejects(
    begin(async (_, ctx) => void ctx.task("mail")),
    /never awaited operation 1, the task `mail`/,
  );
});

test("the test bed finds a rejected promise that was never awaited", async () => {
  const run = await begin(async (_, ctx) => {
    const charge = async () => ctx.task("charge");
    void charge();
    await ctx.sleep(1_000);
  });
  await run.fail("charge", "no money");
  await assert.rejects(run.advance(1_000), /was rejected, and the code has never awaited it/);
});

test("the test bed finds state outside of the code", async () => {
  let runs = 0;
  const run = await begin(async (_, ctx) => {
    runs += 1;
    await ctx.task(`task-${runs}`);
    await ctx.sleep(1);
  });
  await assert.rejects(run.complete("task-1"), Nondeterminism);
});

test("another task than in the history is named with both and the cause", async () => {
  const run = await begin(order, { item: "tea" });
  await assert.rejects(
    replayOther(run, async (_, ctx) => {
      await ctx.task("book");
    }),
    (error) => {
      assert.ok(error instanceof Nondeterminism);
      assert.equal(error.position, 1);
      assert.match(error.message, /`reserve`.*`book`.*the likely cause is a renamed task/);
      return true;
    },
  );
});

test("a timer with another duration than in the history is named", async () => {
  const run = await begin(async (_, ctx) => ctx.sleep(10_000));
  await assert.rejects(
    replayOther(run, async (_, ctx) => ctx.sleep(11_000)),
    /changed duration/,
  );
});

test("code that ends before its history is a difference", async () => {
  const run = await begin(order, { item: "tea" });
  await assert.rejects(
    replayOther(run, async () => {}),
    /its end \(it returned\)/,
  );
});

test("a call beyond the history is a difference", async () => {
  const run = await begin(order, { item: "tea" });
  await assert.rejects(
    replayOther(run, async (_, ctx) => void (await ctx.all([ctx.task("reserve"), ctx.task("more")]))),
    /the history ends/,
  );
});

test("a history of the same code is replayed without a difference", async () => {
  const run = await begin(order, { item: "tea" });
  await run.complete("reserve", 4);
  await run.advance(60_000);
  await replayOther(run, order);
});

test("an input that the schema rejects fails the orchestration", async () => {
  const app = new Worker();
  const kind = app.orchestration("count", { input: z.number() }, async (count) => count);
  const run = await OrchestrationTest.start(app, kind, "many" as unknown as number);
  assert.match(run.error, /^Fail: the input is not valid/);
});

test("a result that the schema rejects is a Fail that names the task", async () => {
  const run = await begin(async (_, ctx) => ctx.task("count", 1, { result: z.number() }));
  await run.complete("count", "many");
  assert.match(run.error, /^Fail: the result of the task `count`: the result of `count` is not valid/);
});

test("a Fail ends the orchestration with its message", async () => {
  const run = await begin(async () => {
    throw new Fail("not paid");
  });
  assert.equal(run.error, "Fail: not paid");
});

test("every other error is a fault of the code", async () => {
  await assert.rejects(
    begin(async () => {
      throw new TypeError("a fault");
    }),
    TypeError,
  );
});

interface TurnVector {
  name: string;
  events: unknown[];
  position: number;
  reply?: object;
  end?: string;
}

interface KeptVector {
  name: string;
  events: unknown[];
  position: number;
  first: object;
  new: unknown[];
  new_position: number;
  reply: object | null;
}

const vectors = JSON.parse(readFileSync(new URL("crates/onward-protocol/vectors.json", PROJECT), "utf8")) as {
  turns: TurnVector[];
  kept_turns: KeptVector[];
};

for (const vector of vectors.turns) {
  test(`turns have the replies of the vectors: ${vector.name}`, async () => {
    const app = new Worker();
    app.orchestration("order", async (count, ctx) => {
      await ctx.task("charge", count);
      await ctx.sleep(60_000);
      return await ctx.waitSignal("paid");
    });
    const logger = console;
    const replay = app.orchestrationOf("order").begin(Buffer.from("7"), { taskId: "1", logger });
    const turn = replay.run(checkEvents(vector.events), vector.position);
    if (vector.reply !== undefined) {
      assert.deepEqual(JSON.parse(Buffer.from(encodeReply(await turn)).toString()), vector.reply);
    } else if (vector.end !== undefined) {
      assert.equal((await turn).end.do, vector.end);
    } else {
      await assert.rejects(turn, Nondeterminism);
    }
  });
}

for (const vector of vectors.kept_turns) {
  test(`kept code has the replies of the vectors: ${vector.name}`, async () => {
    const app = new Worker();
    app.orchestration("order", async (count, ctx) => {
      await ctx.task("charge", count);
      await ctx.sleep(60_000);
    });
    const code = app.orchestrationOf("order");
    const turn = async (list: unknown[], position: number, newOnly: boolean) => {
      const message = { events: [Buffer.from(JSON.stringify(list))], position, generation: 0, newOnly };
      const reply = await code.turn(message, Buffer.from("7"), { taskId: "1", logger: console, keeps: true });
      return reply === null ? null : JSON.parse(Buffer.from(encodeReply(reply)).toString());
    };
    assert.deepEqual(await turn(vector.events, vector.position, false), vector.first);
    assert.deepEqual(await turn(vector.new, vector.new_position, true), vector.reply);
  });
}
