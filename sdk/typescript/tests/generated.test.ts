/** The code of `onward workflow generate`: its types in `tsc --strict`, and its handlers in runs. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Gateway, options } from "./gateway-process.js";
import { PROJECT } from "./project.js";

const SDK = fileURLToPath(new URL("sdk/typescript/", PROJECT));
const TEMPLATES = fileURLToPath(new URL("crates/onward-cli/tests/it/generated_code/", PROJECT));
const PROGRAM = process.env.ONWARD_BIN ?? fileURLToPath(new URL("target/debug/onward", PROJECT));
const STRICT = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--noUnusedLocals"];

const ORDERS = `
import { writeFileSync } from "node:fs";
import { Worker } from "onward";
import { run } from "onward/testing";
import { kinds, register, type OrdersInput } from "./orders.js";

export const order: OrdersInput = { order: "A-17", lines: [{ article: "tea", quantity: 2 }], type: "by-phone" };

const app = new Worker();
register(app, {
  "stock.reserve": (task) => ({ id: task.index + 40 }),
  "parcels.ship": async (task) => {
    const ids = task.results.reserve?.map((item) => item?.id);
    return { parcel: task.input.order + " " + JSON.stringify(ids) + " " + task.results.price };
  },
  "prices.total": (lines) => lines.reduce((sum, line) => sum + line.quantity, 0),
  "stock.release": () => null,
});

export async function check(): Promise<number> {
  const outcome = await run(app, kinds["prices.total"], order.lines);
  return outcome.value() as number;
}

if (process.env.PID_FILE !== undefined) {
  writeFileSync(process.env.PID_FILE, String(process.pid));
  await app.run();
} else {
  console.log(await check());
}
`;

const HOSTILE = `
import { Worker } from "onward";
import { register, type ImportInput } from "./hostile.js";

export const given: ImportInput = {
  class: "c",
  ["__proto__"]: 1,
  "a-b": { from: "text" },
  "a b": { from: 2 },
  "": true,
  "äpfel \\u202e\\n\\"'\\\\": null,
  __private: 1.5,
  constructor: 'a"b',
  items: { keys: "k" },
  types: { str: "s", list: ["l"], text: "t" },
  union: ["x", "y"],
  const: "only",
};

const app = new Worker();
register(app, {
  String: (task) => ({ None: task.input }),
  ["__proto__"]: (task) => (typeof task === "string" ? 7 : null),
  'a"b\\\\c*/': (task) => task.Any,
  Worker: (task) => task.x.keys,
  "1st": () => ["left"],
  Record: () => ["a", null],
  "äöü": () => 1,
});
console.log(JSON.stringify(app.kinds));
`;

/** Makes a folder with the package, the code of a template, and a program that uses it. */
function write(context: TestContext, name: string, program: string): string {
  const folder = mkdtempSync(join(tmpdir(), "onward-generated-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "node_modules/@types"), { recursive: true });
  symlinkSync(SDK, join(folder, "node_modules/onward"));
  symlinkSync(join(SDK, "node_modules/@types/node"), join(folder, "node_modules/@types/node"));
  writeFileSync(join(folder, "package.json"), '{"type": "module", "private": true}');
  const file = join(TEMPLATES, `${name}.yaml`);
  const code = execFileSync(PROGRAM, ["workflow", "generate", file, "--language", "typescript"]);
  writeFileSync(join(folder, `${name}.ts`), code);
  writeFileSync(join(folder, "app.ts"), program);
  return folder;
}

/** Compiles the program and other files, and returns what the compiler finds. */
function compile(folder: string, ...files: string[]): string {
  const target = ["--module", "nodenext", "--target", "es2022", "--types", "node"];
  const compiler = join(SDK, "node_modules/.bin/tsc");
  const done = spawnSync(compiler, [...STRICT, ...target, "app.ts", ...files], {
    cwd: folder,
    encoding: "utf8",
  });
  return done.stdout + done.stderr;
}

test("the types of generated code pass a strict check, and its kinds have them", options, (context) => {
  const folder = write(context, "orders", ORDERS);
  assert.equal(compile(folder), "");
  assert.equal(execFileSync("node", ["app.js"], { cwd: folder, encoding: "utf8" }), "2\n");
});

test("hostile names are the properties and kinds of running code", options, (context) => {
  const folder = write(context, "hostile", HOSTILE);
  assert.equal(compile(folder), "");
  const kinds = JSON.parse(execFileSync("node", ["app.js"], { cwd: folder, encoding: "utf8" }));
  const expected = ["String", "__proto__", 'a"b\\c*/', "Worker", "1st", "Record", "äöü"];
  assert.deepEqual(kinds.sort(), expected.sort());
});

const wrong: [string, string, string][] = [
  ["task.index + 40", "String(task.index)", "'string' is not assignable to type 'number'"],
  ['order: "A-17"', "order: 17", "'number' is not assignable to type 'string'"],
  ['"by-phone"', '"by-post"', '"by-post"'],
  ['  "stock.release": () => null,\n', "", '"stock.release"'],
  ["task.index", "task.number", "Property 'number' does not exist"],
];
test("wrong results, inputs, choices, payloads and missing handlers are found", options, (context) => {
  const folder = write(context, "orders", ORDERS);
  wrong.forEach(([old, other], number) => {
    assert.ok(ORDERS.includes(old));
    writeFileSync(join(folder, `wrong-${number}.ts`), ORDERS.replace(old, other));
  });
  const found = compile(folder, ...wrong.map((_, number) => `wrong-${number}.ts`));
  wrong.forEach(([, , finding], number) => {
    const [, of = ""] = found.split(`wrong-${number}.ts`);
    assert.ok(of.includes(finding), found);
  });
});

test("a run has the generated types from its start to its result", options, (context) => {
  const folder = write(context, "orders", ORDERS);
  assert.equal(compile(folder), "");
  const gateway = new Gateway(context, join(folder, "app.js"));
  gateway.start();
  const input = '{"order": "A-17", "lines": [{"article": "tea", "quantity": 2}]}';
  const shown = gateway.onward(["run", join(TEMPLATES, "orders.yaml"), "--input", input]);
  assert.ok(shown.includes("A-17 [40] 2"), shown);
});
