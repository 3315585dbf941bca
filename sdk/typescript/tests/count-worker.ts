/** A worker that states which process it is, for tests that kill it. */

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { Worker } from "../src/index.js";

const app = new Worker({ slots: 4 });

/** Returns its payload after a few milliseconds of work. */
app.handler("count", { retry: 100 }, async (number, ctx) => {
  await setTimeout(3);
  ctx.progress(1);
  return number;
});

/** Waits until it is asked to stop. */
app.handler("hold", async (_, ctx) => {
  writeFileSync(process.env.HOLD_FILE ?? "hold", "");
  await ctx.sleep(60_000);
});

/** Computes for so many milliseconds, without a turn of the event loop. */
app.handler("compute", (ms) => {
  const until = performance.now() + (ms as number);
  while (performance.now() < until);
});

/** Returns what the descriptors of a program that a handler starts point to. */
app.handler("descriptors", () => execFileSync("ls", ["-l", "/proc/self/fd"], { encoding: "utf8" }));

if (process.env.PID_FILE !== undefined) writeFileSync(process.env.PID_FILE, String(process.pid));
await app.run();
