/** Prints results as Rust's test harness does, for `cargo xtask test`. */

import type { TestEvent } from "node:test/reporters";

const names = new Map<string, number>();

/** Returns a name that no earlier test has. */
function unique(name: string): string {
  const count = (names.get(name) ?? 0) + 1;
  names.set(name, count);
  return count === 1 ? name : `${name} (${count})`;
}

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const failures: [string, string][] = [];
  for await (const { type, data } of source) {
    if (type === "test:pass") {
      const took = (data.details.duration_ms / 1000).toFixed(3);
      const result = data.skip === undefined ? `ok <${took}s>` : "ignored";
      yield `test ${unique(data.name)} ... ${result}\n`;
    } else if (type === "test:fail") {
      const name = unique(data.name);
      failures.push([name, String(data.details.error.cause ?? data.details.error)]);
      yield `test ${name} ... FAILED\n`;
    }
  }
  for (const [name, text] of failures) yield `---- ${name} stdout ----\n${text}\n`;
  yield failures.length > 0 ? "failures:\n" : "";
}
