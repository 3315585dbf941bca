/** Workflows whose steps are in workers, while every process is killed, paused, stopped and replaced. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { options, PROGRAM } from "./gateway-process.js";
import { PROJECT } from "./project.js";

const SUITE = fileURLToPath(new URL("sdk/conformance/kills.py", PROJECT));
const WORKER = fileURLToPath(new URL("steps-worker.js", import.meta.url));

for (const carrier of ["ipc", "http"]) {
  test(`over ${carrier} no step is lost or done twice`, { ...options, timeout: 600_000 }, async () => {
    const worker = `'${process.execPath}' '${WORKER}'`;
    const args = [SUITE, "--faults", "5", "--carrier", carrier, "--worker", worker];
    const env = { ...process.env, ONWARD_BIN: PROGRAM };
    await new Promise<void>((resolve, reject) => {
      execFile("python3", args, { env }, (error, out, errors) => {
        if (error === null) resolve();
        else reject(new assert.AssertionError({ message: `${out}${errors}` }));
      });
    });
  });
}
