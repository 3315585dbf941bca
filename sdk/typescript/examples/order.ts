/**
 * The handlers of an order's saga, `order.yaml`: reserve, charge and ship, or undo what was done.
 *
 *     onward work --app "node order.js" &
 *     onward run order.yaml --input order=7 --input amount=40
 *
 * Each effect is a line in a file under the key that the workflow states, so that an attempt that
 * runs twice has its effect once. A real shop calls its payment service with the same key.
 */

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { Fail, Worker } from "onward";
import { z } from "zod";

/** A file of effects. One process writes it, and no write is interrupted by another handler. */
class Ledger {
  readonly #path: string;
  readonly #keys: Set<string>;

  constructor(path: string) {
    this.#path = path;
    const lines = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
    this.#keys = new Set(lines.filter(Boolean).map((line) => JSON.parse(line).key));
  }

  /** Writes an effect, or nothing if an earlier attempt did. */
  record(key: string, what: string, amount = 0): void {
    if (this.#keys.has(key)) return;
    appendFileSync(this.#path, `${JSON.stringify({ key, what, amount })}\n`, { flush: true });
    this.#keys.add(key);
  }
}

const app = new Worker({ name: "orders", state: new Ledger(process.env.LEDGER ?? "ledger") });

app.use(async (ctx, next) => {
  const began = performance.now();
  try {
    await next();
  } finally {
    ctx.logger.info("attempt", { ms: Math.round(performance.now() - began) });
  }
});

app.handler("stock.reserve", { input: z.object({ order: z.string() }), retry: 5 }, ({ order }, ctx) => {
  const id = `reservation-${order}`;
  ctx.state.record(id, "reserved");
  return { id };
});

// Without an id, the reservation never happened.
const Release = z.object({ order: z.string(), reservation: z.string().nullish() });
app.handler("stock.release", { input: Release, retry: 20 }, ({ reservation }, ctx) => {
  if (reservation != null) ctx.state.record(`${reservation}-released`, "released");
});

const Charge = z.object({ amount: z.number(), once: z.string() });
app.handler("card.charge", { input: Charge, retry: 5, timeoutMs: 30_000 }, ({ amount, once }, ctx) => {
  if (amount <= 0) throw new Fail(`the amount is ${amount}; it must be above 0`);
  ctx.state.record(once, "charged", amount);
  return { charge: once, amount };
});

app.handler("card.refund", { input: z.object({ once: z.string() }), retry: 20 }, ({ once }, ctx) => {
  ctx.state.record(`${once}-refund`, "refunded");
});

app.handler("parcels.ship", { retry: 5 }, (_, ctx) => {
  const { order } = z.object({ order: z.string() }).parse(ctx.step.input);
  ctx.state.record(`parcel-${order}`, "shipped");
  return { parcel: `parcel-${order}` };
});

await app.run();
