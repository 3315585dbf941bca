/** A worker for steps of workflows, which the suite of kills kills and replaces by a new version. */

import { setTimeout } from "node:timers/promises";
import { Worker } from "../src/index.js";

const VERSION = process.env.STEPS_VERSION ?? "1";

const app = new Worker({ slots: 4 });

/** Returns a result that states which program computed it, after a few milliseconds. */
async function stated(number: number) {
  await setTimeout(5);
  return { number, by: `typescript ${VERSION}` };
}

app.handler("square", (task) => stated((task as { number: number }).number ** 2));
app.handler("product", (task) => stated((task as { numbers: number[] }).numbers.reduce((a, b) => a * b)));
/** Ends the process of the worker in the middle of its work. */
app.handler("poison", { retry: 1 }, () => process.kill(process.pid, "SIGKILL"));
if (VERSION === "2") app.handler("cube", (task) => stated((task as { number: number }).number ** 3));

await app.run();
