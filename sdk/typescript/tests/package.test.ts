/**
 * The packed package in an empty folder: it installs, its types compile, and the README's examples
 * do.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { VERSION } from "../src/index.js";
import { PROJECT } from "./project.js";

const SDK = fileURLToPath(new URL("sdk/typescript/", PROJECT));
const folder = mkdtempSync(join(tmpdir(), "onward-package-"));
const readme = readFileSync(join(SDK, "README.md"), "utf8");
const guide = readFileSync(fileURLToPath(new URL("docs/guides/clients.md", PROJECT)), "utf8");
const program = process.env.ONWARD_BIN ?? fileURLToPath(new URL("target/debug/onward", PROJECT));
const isMissing = !existsSync(program) && process.env.ONWARD_REQUIRE_BACKENDS === undefined;
const examples = [...readme.matchAll(/```typescript\n(.*?)```/gs)].map(([, code]) => code as string);

function execute(program: string, ...args: string[]): string {
  return execFileSync(program, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

before(() => {
  // The build of this test run is packed as it is: no script may replace it while other tests read
  // it.
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder], { cwd: SDK });
  writeFileSync(join(folder, "package.json"), '{"type": "module", "private": true}');
  execute("npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", `./onward-${VERSION}.tgz`);
  mkdirSync(join(folder, "node_modules/@types"));
  symlinkSync(join(SDK, "node_modules/zod"), join(folder, "node_modules/zod"));
  symlinkSync(join(SDK, "node_modules/@types/node"), join(folder, "node_modules/@types/node"));
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("the package has the version that it states, and needs no other package", () => {
  const manifest = JSON.parse(readFileSync(join(folder, "node_modules/onward/package.json"), "utf8"));
  assert.equal(manifest.version, VERSION);
  assert.equal(manifest.dependencies, undefined);
});

test("the package is imported and runs a handler", () => {
  const code = `
    import { Worker } from "onward";
    import { run } from "onward/testing";
    const app = new Worker();
    app.handler("double", (n) => 2 * n);
    console.log((await run(app, "double", 21)).value());`;
  assert.equal(execute("node", "--input-type=module", "--eval", code).trim(), "42");
});

test("the README's examples compile against the packed types", () => {
  assert.ok(examples.length >= 5);
  examples.forEach((code, number) => {
    writeFileSync(join(folder, `example-${number}.ts`), code);
  });
  const files = examples.map((_, number) => `example-${number}.ts`);
  const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--types", "node"];
  execute(join(SDK, "node_modules/.bin/tsc"), ...options, ...files);
});

const skip = isMissing ? `no program at ${program}` : false;
test("the programs of the guide of clients are typed, and print what it says", { skip }, () => {
  const blocks = [...guide.matchAll(/```typescript\n(.*?)```/gs)].map(([, code]) => code as string);
  writeFileSync(join(folder, "guide.ts"), blocks.join("\n"));
  const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--types", "node"];
  execute(join(SDK, "node_modules/.bin/tsc"), ...options, "guide.ts");
  const runner = fileURLToPath(new URL("sdk/conformance/client_guide.py", PROJECT));
  execute("python3", runner, "typescript", join(folder, "guide.mjs"), "--", "node");
});

test("the README's quick start is JavaScript, and its worker starts", () => {
  writeFileSync(join(folder, "app.mjs"), examples[0] as string);
  const { ONWARD_GATEWAY: _, ...env } = process.env;
  const run = () => execFileSync("node", ["app.mjs"], { cwd: folder, env, stdio: "pipe", encoding: "utf8" });
  // Without a gateway it gets as far as to look for one.
  assert.throws(run, /ONWARD_GATEWAY is not set/);
});
