"""A worker with an orchestration, for tests that kill it or its gateway. Each task leaves a line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from onward import OrchestrationContext, Worker

app = Worker(slots=4)
Path(os.environ["PID_FILE"]).write_text(str(os.getpid()))


def note(line: str) -> None:
    """Adds a line to the ledger in one write, which other processes do not break."""
    with Path(os.environ["LEDGER"]).open("a") as ledger:
        ledger.write(f"{line}\n")


@app.handler("reserve")
def reserve(order: dict[str, Any]) -> int:
    note(f"reserve {order['number']}")
    return int(order["number"]) * 10


@app.handler("ship")
def ship(parcel: dict[str, Any]) -> str:
    note(f"ship {parcel['shelf']}")
    return f"parcel {parcel['shelf']}"


@app.orchestration("order")
async def order(ctx: OrchestrationContext, order: dict[str, Any]) -> str:
    shelf = await ctx.task("reserve", order)
    await ctx.sleep(0.05)
    cents = await ctx.wait_signal("paid")
    parcel = await ctx.task("ship", {"shelf": shelf})
    return f"{parcel} for {cents}"


@app.orchestration("stuck")
async def stuck(ctx: OrchestrationContext) -> None:
    await ctx.task("reserve", {"number": 1})
    raise ValueError("a fault of the code")


@app.orchestration("parent")
async def parent(ctx: OrchestrationContext, number: int) -> Any:
    child = ctx.child("order", {"number": number}, key=f"child-{number}")
    index, _ = await ctx.first(child, ctx.wait_signal("stop"))
    return index


begun = 0
"""The number of times that `begins` began in this process."""


@app.orchestration("begins")
async def begins(ctx: OrchestrationContext, steps: int) -> int:
    global begun
    begun += 1
    for step in range(steps):
        await ctx.task("reserve", {"number": step})
    return begun


@app.handler("lines")
def lines() -> str:
    return "x" * 400_000


@app.orchestration("large")
async def large(ctx: OrchestrationContext) -> int:
    total = 0
    for _ in range(4):
        total += len(await ctx.task("lines"))
    await ctx.wait_signal("go")
    return total


if __name__ == "__main__":
    app.run()
