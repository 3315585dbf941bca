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

function play(...options: string[]): Promise<void> {
  const args = [`${SUITE}conformance.py`, ...options, "--", process.execPath, WORKER];
  return new Promise<void>((resolve, reject) => {
    execFile("python3", args, (error, out, errors) => {
      if (error === null) resolve();
      else reject(new assert.AssertionError({ message: `${out}${errors}` }));
    });
  });
}

for (const file of readdirSync(`${SUITE}scripts`).sort()) {
  const script = file.replace(/\.json$/, "");
  test(`conformance: ${script}`, { timeout: 120_000 }, () => play("--only", script));
}

test("conformance: every script over HTTP", { timeout: 600_000 }, () => play("--carrier", "http"));
