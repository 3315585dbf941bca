/**
 * The worker that the scripted gateway of sdk/conformance runs. README.md there lists its kinds.
 */

import { bytes, Fail, RetryLater, Worker } from "../src/index.js";
import { object, string } from "./schemas.js";

const number = (name: string, fallback: number) => Number(process.env[name] ?? fallback);

const app = new Worker({
  name: "conformance",
  slots: number("CONFORMANCE_SLOTS", 4),
  prefetch: number("CONFORMANCE_PREFETCH", 0),
  graceMs: number("CONFORMANCE_GRACE", 20) * 1000,
});

let openGate = () => {};
const gate = new Promise<void>((resolve) => {
  openGate = resolve;
});

app.handler("echo", { input: bytes }, (payload) => payload);
app.handler("echo_async", { input: bytes }, async (payload) => payload);
app.handler("typed", { input: object, retry: { attempts: 3 }, timeoutMs: 60_000, limit: 1 }, (numbers) =>
  Object.values(numbers).reduce((sum, value) => sum + value, 0),
);
app.handler("fail", { input: string }, (message) => {
  throw new Fail(message, { details: { from: "fail" } });
});
app.handler("crash", { input: string }, (message) => {
  throw new TypeError(message);
});
app.handler("retry_later", (counts) => {
  throw new RetryLater("busy", { afterMs: 1500, counts: counts === true });
});
app.handler("hold", (_, ctx) => ctx.sleep(60_000));
app.handler("hold_async", async (_, ctx) => {
  await fetchNothing(ctx.signal);
});
app.handler("gate", async () => {
  await gate;
  return "passed";
});
app.handler("alone", { limit: 1 }, async () => {
  await gate;
});
app.handler("open", () => openGate());
app.handler("report", async (_, ctx) => {
  const before = ctx.lastCheckpoint();
  ctx.progress(0.5, "half");
  await ctx.checkpoint({ at: ctx.attempt });
  return before;
});
app.handler("big", (size) => new Uint8Array(size as number).fill("x".charCodeAt(0)));
app.handler("children", (_, ctx) => {
  if (ctx.isResumed) return ctx.lastCheckpoint();
  ctx.spawn("echo", "tea", { key: "tea" });
  ctx.spawn("echo", "cup", { priority: 200 });
  return ctx.awaitChildren("both");
});
app.handler("later", (_, ctx) => ctx.later({ withinMs: 60_000 }));
app.handler("move", { input: string }, (queue, ctx) => ctx.move(queue));
app.handler("submit", { input: string }, async (key, ctx) => (await ctx.submit("echo", "hi", { key })).task);
app.handler("ask", { input: string }, async (task, ctx) =>
  (await ctx.result(task, { waitMs: 5000 })).value(),
);
app.handler("print", (lines) => {
  for (let line = 0; line < (lines as number); line += 1) console.log("not the protocol", line);
  return "printed";
});
app.decision("route", { choices: ["auto", "manager"] }, (step) =>
  (step.input as { amount: number }).amount < 1000 ? "auto" : "manager",
);
app.batch("batch", { every: 2, initial: 0 }, async (positions) => {
  for await (const position of positions) positions.partial += position;
});

/** Waits as a request without an answer does: its signal aborts it with an AbortError. */
function fetchNothing(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setInterval(() => {}, 1000);
    const abort = () => {
      clearInterval(timer);
      reject(new DOMException("aborted", "AbortError"));
    };
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
  });
}

await app.run();
