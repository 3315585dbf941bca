#!/usr/bin/env node
/** Runs the program `onward` of the package of this platform, which is an optional dependency. */

import { spawn } from "node:child_process";
import { createRequire } from "node:module";

/**
 * Signals that a terminal sends to the program too. It stops at the first one, and ends its work at
 * once at the second, so they are not sent again.
 */
const FROM_TERMINAL = ["SIGINT", "SIGQUIT", "SIGHUP"];

function program() {
  const name = `onward-${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`${name}/onward`);
  } catch {
    console.error(`the package ${name} is missing; install onward with its optional dependencies,`);
    console.error("or put the program `onward` into the path");
    process.exit(1);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
for (const name of FROM_TERMINAL) process.on(name, () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  for (const name of [...FROM_TERMINAL, "SIGTERM"]) process.removeAllListeners(name);
  process.kill(process.pid, signal);
});
