/** Checks of types: each `@ts-expect-error` is an error of the compiler if the line has none. */

import { z } from "zod";
import { defineKind, Handler, type Kind, Worker } from "../src/index.js";
import { run } from "../src/testing.js";

const app = new Worker({ state: { db: "" } });
const Image = z.object({ url: z.string(), width: z.number().default(100) });
const Size = z.object({ width: z.number() });

export const resize = app.handler("resize", { input: Image, output: Size }, (task, ctx) => {
  const url: string = task.url;
  const width: number = task.width;
  const db: string = ctx.state.db;
  // @ts-expect-error the payload has no such field
  task.height;
  // @ts-expect-error the state has no such field
  ctx.state.cache;
  return { width: width + url.length + db.length };
});

// @ts-expect-error the result lacks `width`
app.handler("wrong", { input: Image, output: Size }, () => ({ height: 1 }));

// @ts-expect-error retry is a number or a policy
app.handler("retry", { retry: "often" }, () => null);

// @ts-expect-error an option that does not exist
app.handler("option", { retries: 5 }, () => null);

app.handler("submits", async (task, ctx) => {
  // @ts-expect-error a payload without a schema is unknown
  task.url;
  await ctx.submit(resize, { url: "a" });
  ctx.spawn(resize, { url: "a", width: 2 }, { key: "a" });
  // @ts-expect-error `url` is a text
  await ctx.submit(resize, { url: 1 });
  // @ts-expect-error `url` is missing
  ctx.spawn(resize, {});
  await ctx.submit("any kind", { anything: 1 });
  // @ts-expect-error priority is a number
  await ctx.submit(resize, { url: "a" }, { priority: "high" });
  const child = await ctx.result("1");
  const width: number = child.value(Size).width;
  // @ts-expect-error without a schema the result is unknown
  child.value().width;
  return width;
});

const mail: Kind<typeof Image, undefined> = defineKind("mail", { input: Image });
app.handler(mail, { limit: 2 }, (task) => task.url.length);
// @ts-expect-error the kind has its schemas already
app.handler(mail, { input: Size }, (task) => task.url.length);

app.decision("route", { choices: ["auto", "manager"], input: z.object({ amount: z.number() }) }, (step) =>
  step.input.amount < 10 ? "auto" : ["manager"],
);
// @ts-expect-error `nobody` is no choice
app.decision("route 2", { choices: ["auto", "manager"] }, () => "nobody");

app.batch("sum", { initial: 0 }, async (batch) => {
  for await (const position of batch) batch.partial += position;
  // @ts-expect-error the partial result is a number
  batch.partial = "";
});

class Resize extends Handler<{ url: string }, { db: string }> {
  readonly kind = "class";
  override readonly input = z.object({ url: z.string() });
  call(task: { url: string }): number {
    return task.url.length;
  }
}
app.register(new Resize());

// @ts-expect-error a class needs a kind
export class WithoutKind extends Handler {
  call(): void {}
}

export async function check(): Promise<void> {
  await run(app, resize, { url: "a" });
  // @ts-expect-error `url` is a text
  await run(app, resize, { url: 1 });
}

export const trip = app.orchestration("trip", { input: Image, output: Size }, async (task, ctx) => {
  const size: { width: number } = await ctx.task(resize, { url: task.url });
  const [first, second] = await ctx.all([ctx.task("a", 1, { result: Size }), ctx.sleep(1)]);
  const width: number = first.width;
  const nothing: undefined = second as undefined;
  const paid: { width: number } = await ctx.waitSignal("paid", { result: Size });
  const [index] = await ctx.first([ctx.child("other"), () => ctx.task(resize, { url: "" })]);
  // @ts-expect-error the kind takes no number
  await ctx.task(resize, 7);
  // @ts-expect-error a task of an orchestration has no headers
  await ctx.task("a", 1, { headers: {} });
  if (nothing !== undefined) return ctx.continueAsNew({ url: "" });
  return { width: size.width + width + paid.width + index };
});

// @ts-expect-error the result lacks `width`
app.orchestration("wrong-result", { output: Size }, async () => ({ height: 1 }));
