/**
 * Checksums of a folder: one task lists it, one child for each file, and the results come together.
 *
 *     onward submit --kind checksums --wait '{"folder": "."}' &
 *     onward work --app "node checksums.js"
 */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Fail, Worker } from "onward";
import { z } from "zod";

const app = new Worker({ name: "checksums" });

const File = z.object({ path: z.string() });
const Sum = z.object({ path: z.string(), sha256: z.string() });

const checksum = app.handler(
  "checksum",
  { input: File, output: Sum, retry: 3, timeoutMs: 600_000 },
  async ({ path }, ctx) => {
    const total = (await stat(path)).size;
    const hash = createHash("sha256");
    let done = 0;
    for await (const block of createReadStream(path, { signal: ctx.signal })) {
      hash.update(block);
      done += block.length;
      ctx.progress({ done, total });
    }
    return { path, sha256: hash.digest("hex") };
  },
);

app.handler("checksums", { input: z.object({ folder: z.string() }), retry: 3 }, async ({ folder }, ctx) => {
  if (!ctx.isResumed) {
    const found = await readdir(folder, { withFileTypes: true }).catch(() => {
      throw new Fail(`\`${folder}\` is no folder that can be read`);
    });
    for (const entry of found) {
      if (entry.isFile()) ctx.spawn(checksum, { path: join(folder, entry.name) });
    }
    return ctx.awaitChildren("listed", { failFast: true });
  }
  const sums = (await ctx.children()).map((child) => child.value(Sum));
  return Object.fromEntries(sums.map(({ path, sha256 }) => [path, sha256]));
});

await app.run();
