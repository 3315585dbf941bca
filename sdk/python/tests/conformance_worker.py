"""The worker that the scripted gateway of sdk/conformance runs. README.md there lists its kinds."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

from onward import AsyncContext, Batch, Context, Fail, NewTask, RetryLater, Step, Worker

app = Worker(
    name="conformance",
    slots=int(os.environ.get("CONFORMANCE_SLOTS", "4")),
    prefetch=int(os.environ.get("CONFORMANCE_PREFETCH", "0")),
    grace=float(os.environ.get("CONFORMANCE_GRACE", "20")),
)
gate = threading.Event()


@app.handler("echo")
def echo(payload: bytes) -> bytes:
    """Returns its payload."""
    return payload


@app.handler("echo_async")
async def echo_async(payload: bytes) -> bytes:
    """Returns its payload, from the event loop."""
    return payload


@app.handler("typed", retry={"attempts": 3}, timeout=60, limit=1)
def typed(numbers: dict[str, int]) -> int:
    """Returns the sum of an object's numbers."""
    return sum(numbers.values())


@app.handler("fail")
def fail(message: str) -> None:
    """Fails without a retry."""
    raise Fail(message, details={"from": "fail"})


@app.handler("crash")
def crash(message: str) -> None:
    """Fails with an error that a retry may fix."""
    raise LookupError(message)


@app.handler("retry_later")
def retry_later(counts: bool) -> None:
    """Is tried again after 1.5 s."""
    raise RetryLater("busy", after=1.5, counts=counts)


@app.handler("hold")
def hold(_: Any, ctx: Context) -> None:
    """Waits until it is asked to stop, and follows."""
    ctx.sleep(60)


@app.handler("hold_async")
async def hold_async(_: Any, ctx: AsyncContext) -> None:
    """Waits until it is asked to stop, on the event loop, and follows."""
    async with ctx.cancel_scope():
        await asyncio.sleep(60)


@app.handler("gate")
def wait_at_gate(_: Any) -> str:
    """Waits for the kind `open`, whatever it is asked."""
    gate.wait(60)
    return "passed"


@app.handler("alone", limit=1)
def alone(_: Any) -> None:
    """Waits for the kind `open`, at most one at a time."""
    gate.wait(60)


@app.handler("open")
def open_gate(_: Any) -> None:
    """Lets every `gate` pass."""
    gate.set()


@app.handler("report")
def report(_: Any, ctx: Context) -> Any:
    """Reports progress, keeps a checkpoint, and returns the checkpoint of the attempt before."""
    before = ctx.last_checkpoint()
    ctx.progress(0.5, "half")
    ctx.checkpoint({"at": ctx.attempt})
    return before


@app.handler("big")
def big(size: int) -> bytes:
    """Returns so many bytes."""
    return b"x" * size


@app.handler("children")
def children(_: Any, ctx: Context) -> Any:
    """Spawns two children and waits for them; the second time it returns its checkpoint."""
    if ctx.is_resumed:
        return ctx.last_checkpoint()
    ctx.spawn("echo", "tea", key="tea")
    ctx.spawn(NewTask("echo", "cup", priority=200))
    return ctx.await_children("both")


@app.handler("later")
def later(_: Any, ctx: Context) -> Any:
    """Is completed by another program within a minute."""
    return ctx.later(within=60)


@app.handler("move")
def move(queue: str, ctx: Context) -> Any:
    """Continues in another queue."""
    return ctx.move(queue)


@app.handler("submit")
def submit(key: str, ctx: Context) -> str:
    """Submits a task with a key, and returns its id."""
    return ctx.submit("echo", "hi", key=key).task


@app.handler("ask")
def ask(task: str, ctx: Context) -> Any:
    """Returns the result of another task."""
    return ctx.result(task, wait=5).value()


@app.handler("print")
def print_lines(lines: int) -> str:
    """Writes to standard output."""
    for line in range(lines):
        print("not the protocol", line, flush=True)
    return "printed"


@app.decision("route", choices=["auto", "manager"])
def route(step: Step) -> str:
    """Chooses by the amount."""
    return "auto" if step.input["amount"] < 1000 else "manager"


@app.batch("batch", every=2)
def batch(positions: Batch) -> None:
    """Adds up its positions."""
    positions.partial = positions.partial or 0
    for position in positions:
        positions.partial += position


if __name__ == "__main__":
    app.run()
