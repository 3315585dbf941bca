/** Small schemas, so that most tests need no library. */

import type { Schema } from "../src/index.js";

/** Returns a schema of values that pass a test. */
export function schema<T>(what: string, test: (value: unknown) => value is T): Schema<T> {
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) => (test(value) ? { value } : { issues: [{ message: `not ${what}` }] }),
    },
  };
}

export const string = schema("a text", (value) => typeof value === "string");

export const object = schema(
  "an object of numbers",
  (value): value is Record<string, number> =>
    typeof value === "object" &&
    value !== null &&
    Object.values(value).every((item) => typeof item === "number"),
);
