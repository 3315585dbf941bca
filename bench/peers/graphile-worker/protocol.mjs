// The protocol between a benchmark program in JavaScript and the runner. As in protocol/go, the row
// arrives as JSON in the environment.

/** Nanoseconds of the monotonic clock. */
export const now = () => process.hrtime.bigint();

/** @returns the row as the system is to do it, the settings, and the URL of the server. */
export function request() {
  const words = process.argv.slice(2);
  const of = (name) => words[words.indexOf(name) + 1];
  if (!process.env.ONWARD_BENCH_ROW) throw new Error("the row is missing: this program is started by bench/runner");
  const row = JSON.parse(process.env.ONWARD_BENCH_ROW);
  if (row.name !== of("--row")) throw new Error(`asked for row ${of("--row")} and given ${row.name}`);
  if (!words.includes("--postgres")) throw new Error(`row ${row.name} needs a PostgreSQL server`);
  return { row, durability: of("--durability"), settings: of("--settings"), postgres: of("--postgres") };
}

/** Returns the text that fills a payload up to the row's size. */
export const note = (row) => "n".repeat(row.payload_bytes - JSON.stringify({ number: 0, submitted: 0, note: "" }).length);

/** The value in microseconds below or at which `fraction` of all lie (nearest rank). */
export function percentile(nanoseconds, fraction) {
  const sorted = Float64Array.from(nanoseconds, Number).sort();
  if (sorted.length === 0) return null;
  return sorted[Math.max(Math.ceil(sorted.length * fraction), 1) - 1] / 1e3;
}

/** Rejects observations that say less than the workload did. */
function verify(row, observed) {
  for (const [name, field] of Object.entries(row.expect)) {
    const expected = field === "count" ? row.count : field;
    if (observed[name] !== expected) {
      throw new Error(`row ${row.name}: \`${name}\` should be ${expected} and is ${observed[name]}`);
    }
  }
}

/** Prints the line of the record. */
export function print(system, asked, measured) {
  const { row } = asked;
  verify(row, measured.observed);
  const usage = process.resourceUsage();
  const latencies = measured.latencies ?? [];
  const line = {
    row: row.name, durability: asked.durability, system, settings: asked.settings, value: measured.value, unit: row.unit, better: row.better,
    min: measured.value, max: measured.value, p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99), runs: 1,
    lost: measured.lost ?? 0, duplicated: measured.duplicated ?? 0,
    cpu_seconds: (usage.userCPUTime + usage.systemCPUTime) / 1e6, peak_mib: usage.maxRSS / 1024,
  };
  console.log(JSON.stringify(line));
}
