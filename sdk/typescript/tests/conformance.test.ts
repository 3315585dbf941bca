/**
 * Every script of sdk/conformance on all of its carriers, by the worker in conformance-worker.ts.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { PROJECT } from "./project.js";

const SUITE = fileURLToPath(new URL("sdk/conformance/", PROJECT));
const WORKER = fileURLToPath(new URL("conformance-worker.js", import.meta.url));

for (const file of readdirSync(`${SUITE}scripts`).sort()) {
  const script = file.replace(/\.json$/, "");
  test(`conformance: ${script}`, { timeout: 120_000 }, async () => {
    const args = [`${SUITE}conformance.py`, "--only", script, "--", process.execPath, WORKER];
    await new Promise<void>((resolve, reject) => {
      execFile("python3", args, (error, out, errors) => {
        if (error === null) resolve();
        else reject(new assert.AssertionError({ message: `${out}${errors}` }));
      });
    });
  });
}
