/** A worker with orchestrations, for tests that kill it or its gateway. Each task leaves a line. */

import { appendFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { Worker } from "../src/index.js";

const app = new Worker({ slots: 4 });
writeFileSync(process.env.PID_FILE ?? "pid", String(process.pid));

const note = (line: string) => appendFileSync(process.env.LEDGER ?? "ledger", `${line}\n`);
const Order = z.object({ number: z.number() });

const reserve = app.handler("reserve", { input: Order, output: z.number() }, ({ number }) => {
  note(`reserve ${number}`);
  return number * 10;
});

const ship = app.handler("ship", { input: z.object({ shelf: z.number() }) }, ({ shelf }) => {
  note(`ship ${shelf}`);
  return `parcel ${shelf}`;
});

const order = app.orchestration("order", { input: Order }, async (order, ctx) => {
  const shelf = await ctx.task(reserve, order);
  await ctx.sleep(50);
  const cents = await ctx.waitSignal("paid");
  const parcel = await ctx.task(ship, { shelf });
  return `${parcel} for ${cents}`;
});

app.orchestration("stuck", async (_, ctx) => {
  await ctx.task(reserve, { number: 1 });
  throw new TypeError("a fault of the code");
});

app.orchestration("timer", async () => new Promise((resolve) => setTimeout(resolve, 1)));

app.orchestration("parent", { input: z.number() }, async (number, ctx) => {
  const child = ctx.child(order, { number }, { key: `child-${number}` });
  const [index] = await ctx.first([child, ctx.waitSignal("stop")]);
  return index;
});

app.orchestration("count", { input: z.number() }, async (count, ctx) => {
  const shelf = await ctx.task(reserve, { number: count });
  return count === 3 ? shelf : ctx.continueAsNew(count + 1);
});

/** The number of times that `begins` began in this process. */
let begun = 0;

app.orchestration("begins", { input: z.number() }, async (steps, ctx) => {
  begun += 1;
  for (let step = 0; step < steps; step += 1) await ctx.task(reserve, { number: step });
  return begun;
});

app.handler("lines", () => "x".repeat(400_000));

app.orchestration("large", async (_, ctx) => {
  let total = 0;
  for (let step = 0; step < 4; step += 1) total += String(await ctx.task("lines")).length;
  await ctx.waitSignal("go");
  return total;
});

await app.run();
