"""A worker for steps of workflows, which the suite of kills kills and replaces by a new version."""

from __future__ import annotations

import math
import os
import time
from typing import Any

from onward import Worker

VERSION = os.environ.get("STEPS_VERSION", "1")

app = Worker(slots=4)


def stated(number: int) -> dict[str, Any]:
    """Returns a result that states which program computed it, after a few milliseconds."""
    time.sleep(0.005)
    return {"number": number, "by": f"python {VERSION}"}


@app.handler("square")
def square(task: dict[str, int]) -> dict[str, Any]:
    return stated(task["number"] ** 2)


@app.handler("product")
def product(task: dict[str, list[int]]) -> dict[str, Any]:
    return stated(math.prod(task["numbers"]))


@app.handler("poison", retry=1)
def poison(_: object) -> None:
    """Ends the process of the worker in the middle of its work."""
    os._exit(70)


if VERSION == "2":

    @app.handler("cube")
    def cube(task: dict[str, int]) -> dict[str, Any]:
        return stated(task["number"] ** 3)


if __name__ == "__main__":
    app.run()
