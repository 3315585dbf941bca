"""A worker that says which process it is, for tests that kill it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from onward import Context, Worker

app = Worker(slots=4)


@app.handler("count", retry=100)
def count(number: int, ctx: Context) -> int:
    """Returns its payload after a few milliseconds of work."""
    time.sleep(0.003)
    ctx.progress(1.0)
    return number


@app.handler("hold")
def hold(_: object, ctx: Context) -> None:
    """Waits until it is asked to stop."""
    Path(os.environ["HOLD_FILE"]).touch()
    ctx.sleep(60)


@app.handler("crash", retry=1)
def crash(_: object) -> None:
    """Fails with an error that it did not choose."""
    raise LookupError("no such row")


if __name__ == "__main__":
    Path(os.environ["PID_FILE"]).write_text(str(os.getpid()))
    app.run()
