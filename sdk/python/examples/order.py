"""The handlers of an order's saga, `order.yaml`: reserve, charge and ship, or undo what was done.

    onward work --app "python order.py" &
    onward run order.yaml --input order=7 --input amount=40

Each effect is a row in a SQLite file under the key that the workflow states, so that an attempt that
runs twice has its effect once. A real shop calls its payment service with the same key.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from onward import Context, Fail, Worker

LEDGER = os.environ.get("LEDGER", "ledger.db")


@dataclass
class Reserve:
    """The stock of an order."""

    order: str


@dataclass
class Release:
    """A reservation to undo; without an id, it never happened."""

    order: str
    reservation: str | None = None


@dataclass
class Charge:
    """An amount to charge once."""

    amount: float
    once: str


@dataclass
class Refund:
    """A charge to undo."""

    once: str


app = Worker(name="orders")


@app.middleware
def with_ledger(ctx: Context) -> Iterator[None]:
    """Opens the ledger for one attempt; its writes are committed if the handler succeeds."""
    ledger = sqlite3.connect(LEDGER, timeout=30)
    ledger.execute("CREATE TABLE IF NOT EXISTS effect (key TEXT PRIMARY KEY, what TEXT, amount REAL)")
    ctx.local["ledger"] = ledger
    try:
        yield
        ledger.commit()
    finally:
        ledger.close()


def record(ctx: Context, key: str, what: str, amount: float = 0) -> None:
    """Writes an effect, or nothing if an earlier attempt did."""
    ledger: sqlite3.Connection = ctx.local["ledger"]
    ledger.execute("INSERT INTO effect VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (key, what, amount))


@app.handler("stock.reserve", retry=5)
def reserve(task: Reserve, ctx: Context) -> dict[str, str]:
    reservation = f"reservation-{task.order}"
    record(ctx, reservation, "reserved")
    return {"id": reservation}


@app.handler("stock.release", retry=20)
def release(task: Release, ctx: Context) -> None:
    if task.reservation is not None:
        record(ctx, f"{task.reservation}-released", "released")


@app.handler("card.charge", retry=5, timeout=30)
def charge(task: Charge, ctx: Context) -> dict[str, Any]:
    if task.amount <= 0:
        raise Fail(f"the amount is {task.amount}; it must be above 0")
    record(ctx, task.once, "charged", task.amount)
    return {"charge": task.once, "amount": task.amount}


@app.handler("card.refund", retry=20, timeout=30)
def refund(task: Refund, ctx: Context) -> None:
    record(ctx, f"{task.once}-refund", "refunded")


@app.handler("parcels.ship", retry=5)
def ship(_: Any, ctx: Context) -> dict[str, str]:
    order = ctx.step.input["order"]
    record(ctx, f"parcel-{order}", "shipped")
    return {"parcel": f"parcel-{order}"}


if __name__ == "__main__":
    app.run()
