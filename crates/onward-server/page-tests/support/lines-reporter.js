// Prints results as Rust's test harness does, for `cargo xtask test`.

const names = new Map();

/** Returns a name that no earlier test has. */
function unique(name) {
  const count = (names.get(name) ?? 0) + 1;
  names.set(name, count);
  return count === 1 ? name : `${name} (${count})`;
}

export default async function* report(source) {
  const failures = [];
  for await (const { type, data } of source) {
    if (type === 'test:pass') {
      const took = (data.details.duration_ms / 1000).toFixed(3);
      yield `test ${unique(data.name)} ... ${data.skip === undefined ? `ok <${took}s>` : 'ignored'}\n`;
    } else if (type === 'test:fail') {
      const name = unique(data.name);
      failures.push([name, String(data.details.error.cause ?? data.details.error)]);
      yield `test ${name} ... FAILED\n`;
    }
  }
  for (const [name, text] of failures) yield `---- ${name} stdout ----\n${text}\n`;
  yield failures.length > 0 ? 'failures:\n' : '';
}
