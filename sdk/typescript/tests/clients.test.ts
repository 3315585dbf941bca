/** Every case of sdk/conformance/clients, by the driver in client-driver.ts. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { PROJECT } from "./project.js";

const SUITE = fileURLToPath(new URL("sdk/conformance/", PROJECT));
const DRIVER = fileURLToPath(new URL("client-driver.js", import.meta.url));
const PROGRAM = process.env.ONWARD_BIN ?? fileURLToPath(new URL("target/debug/onward", PROJECT));
const isMissing = !existsSync(PROGRAM) && process.env.ONWARD_REQUIRE_BACKENDS === undefined;

for (const file of readdirSync(`${SUITE}clients`).sort()) {
  const name = file.replace(/\.json$/, "");
  test(`client: ${name}`, {
    skip: isMissing ? `no program at ${PROGRAM}` : false,
    timeout: 180_000,
  }, async () => {
    const args = [`${SUITE}clients.py`, "--only", name, "--", process.execPath, DRIVER];
    await new Promise<void>((resolve, reject) => {
      execFile("python3", args, (error, out, errors) => {
        if (error === null) resolve();
        else reject(new assert.AssertionError({ message: `${out}${errors}` }));
      });
    });
  });
}
