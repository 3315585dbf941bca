import assert from "node:assert/strict";
import { test } from "node:test";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";
import { PayloadError, type Schema, Worker } from "../src/index.js";
import { cut } from "../src/internal/bounds.js";
import { decodeJson, encodePayload, validateSync } from "../src/internal/payload.js";
import { run } from "../src/testing.js";

test("bytes stay as they are", () => {
  const bytes = new Uint8Array([0, 255]);
  assert.equal(encodePayload(bytes), bytes);
});

test("undefined is null", () => {
  assert.equal(Buffer.from(encodePayload(undefined)).toString(), "null");
});

const cyclic: Record<string, unknown> = {};
cyclic.self = cyclic;
for (const [name, value] of [
  ["a bigint", 1n],
  ["a function", () => {}],
  ["a Map", new Map()],
  ["a Set", new Set()],
  ["NaN", Number.NaN],
  ["a cycle", cyclic],
] as const) {
  test(`refuses ${name}, which has no JSON form`, () => {
    assert.throws(() => encodePayload(value), PayloadError);
  });
}

test("an empty payload is null", () => {
  assert.equal(decodeJson(new Uint8Array()), null);
});

test("refuses a payload that is not UTF-8", () => {
  assert.throws(() => decodeJson(new Uint8Array([0x22, 0xff, 0x22])), /UTF-8/);
});

test("cuts a text at a character", () => {
  assert.equal(cut("äöü", 7), "äöü");
  assert.equal(cut("äöüß", 7), "äö…");
  assert.ok(Buffer.byteLength(cut("😀".repeat(40), 100)) <= 100);
});

const schemas: Record<string, Schema<unknown, { url: string }>> = {
  zod: z.object({ url: z.string() }),
  valibot: v.object({ url: v.string() }),
  arktype: type({ url: "string" }),
};

for (const [name, schema] of Object.entries(schemas)) {
  test(`reads a payload by a schema of ${name}`, async () => {
    const app = new Worker();
    app.handler("fetch", { input: schema }, (task) => task.url);
    assert.equal((await run(app, "fetch", { url: "a" })).value(), "a");
  });

  test(`fails without a retry, and names the path, if a schema of ${name} rejects the payload`, async () => {
    const app = new Worker();
    app.handler("fetch", { input: schema }, (task) => task.url);
    const outcome = await run(app, "fetch", { url: 7 });
    assert.equal(outcome.fields.retry, false);
    assert.match(String(outcome.fields.message), /url/);
  });
}

test("a schema may change the value and validate asynchronously", async () => {
  const app = new Worker();
  const input = z.object({ n: z.string().transform(Number) }).refine(async ({ n }) => n > 0);
  app.handler("double", { input }, ({ n }) => n * 2);
  assert.equal((await run(app, "double", { n: "4" })).value(), 8);
  assert.equal((await run(app, "double", { n: "-4" })).outcome, "fail");
});

test("a result that its schema rejects fails without a retry", async () => {
  const app = new Worker();
  app.handler("size", { output: z.object({ width: z.number().max(10) }) }, () => ({ width: 11 }));
  const outcome = await run(app, "size");
  assert.equal(outcome.outcome, "fail");
  assert.equal(outcome.fields.retry, false);
});

test("a schema that validates asynchronously is refused where no promise is possible", () => {
  const schema = z.string().refine(async () => true);
  assert.throws(() => validateSync("a", schema, "the checkpoint"), /asynchronously/);
});
