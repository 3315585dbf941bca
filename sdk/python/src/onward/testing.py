"""Runs a handler without a gateway, for tests.

```python
from onward.testing import run

def test_greet():
    assert run(app, "greet", "Ada").value() == "Hello, Ada"
```
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from onward import _ends, _payload
from onward._context_base import ContextBase
from onward._ends import End, Ending
from onward._frames import PAYLOAD_BYTES, Header
from onward._messages import Reply, TaskMessage, TaskOptions
from onward.errors import OnwardError
from onward.tasks import NewTask
from onward.worker import Worker

__all__ = ["Outcome", "run", "run_async"]


@dataclass
class Outcome:
    """The end of an attempt, and what its handler did before.

    `outcome` is `ok`, `fail`, `later`, `children`, `move`, `release` or `cancelled`; `fields` are
    those of the protocol's `end`. `error` is what the handler raised.
    """

    outcome: str
    fields: dict[str, Any]
    payload: bytes = b""
    error: BaseException | None = None
    progress: list[dict[str, Any]] = field(default_factory=list)
    checkpoints: list[Any] = field(default_factory=list)
    spawned: list[NewTask] = field(default_factory=list)
    submitted: list[dict[str, Any]] = field(default_factory=list)

    def value(self, kind: Any = None) -> Any:
        """Returns the result, read as the given type.

        Raises what the handler raised, or AssertionError if it ended without a result.
        """
        if self.error is not None:
            raise self.error
        if self.outcome != "ok":
            raise AssertionError(f"the attempt ended with `{self.outcome}`, not with a result: {self.fields}")
        return _payload.decoder_for(kind)(self.payload)


Answer = Callable[[Header, list[bytes]], Any]


class _TestRuntime:
    """The runtime of one attempt: it records, and answers as a gateway would."""

    max_payload = PAYLOAD_BYTES
    features = frozenset({"ask", "headers", "submit"})

    def __init__(self, worker: Worker, answer: Answer | None) -> None:
        self.state = worker.state
        self.progress: list[dict[str, Any]] = []
        self.checkpoints: list[Any] = []
        self.submitted: list[dict[str, Any]] = []
        self._answer = answer

    def touch(self, context: ContextBase) -> None:
        if context.progress_fields:
            self.progress.append(dict(context.progress_fields))

    def save_checkpoint(self, context: ContextBase, payload: bytes) -> Future[None]:
        self.checkpoints.append(_payload.decode_json(payload))
        return _done(None)

    def request(self, header: Header, payloads: list[bytes], *, resend: bool) -> Future[Reply]:
        if header["t"] == "submit":
            first = len(self.submitted) + 1
            self.submitted += header["tasks"]
            ids = range(first, len(self.submitted) + 1)
            tasks = [{"task": str(number), "result": "inserted"} for number in ids]
            return _done(Reply(0, {"t": "reply", "tasks": tasks}, []))
        if self._answer is None:
            raise OnwardError(f"the handler asks for {header['what']}: give `answer` to the test's `run`")
        fields, answered = self._answer(header, payloads)
        return _done(Reply(0, {"t": "reply", **fields}, answered))

    def check_process(self) -> None:
        return


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


async def run_async(
    worker: Worker,
    kind: str,
    payload: Any = None,
    *,
    attempt: int = 1,
    checkpoint: Any = None,
    headers: Mapping[str, str] | None = None,
    stop: str | None = None,
    stop_after: float = 0.0,
    answer: Answer | None = None,
) -> Outcome:
    """Runs the handler of `kind` once, with the worker's middleware, and returns how it ended.

    `payload` and `checkpoint` are bytes, or become JSON. `stop` is a reason such as `cancelled`: the
    attempt is asked to stop after `stop_after` seconds. `answer` takes the header and payloads of an
    `ask`, and returns the fields and payloads of its reply.
    """
    entry, call = worker.call_of(kind)
    task = TaskMessage(
        "1",
        "1",
        kind,
        attempt,
        b"" if payload is None else _payload.encode(payload),
        None if checkpoint is None else _payload.encode(checkpoint),
        TaskOptions(headers=dict(headers or {})),
    )
    runtime = _TestRuntime(worker, answer)
    context = entry.context_type(task, runtime)
    timer = threading.Timer(stop_after, context.request_stop, [stop]) if stop is not None else None
    if timer is not None:
        timer.start()
    error: BaseException | None = None
    value: Any = None
    try:
        value = await call(context) if entry.is_async else await asyncio.to_thread(call, context)
    except Exception as raised:
        error = raised
    finally:
        if timer is not None:
            timer.cancel()
            timer.join()
    return _outcome(context, runtime, value, error)


def run(worker: Worker, kind: str, payload: Any = None, **options: Any) -> Outcome:
    """Does what `run_async` does, with an event loop of its own; it takes the same options."""
    return asyncio.run(run_async(worker, kind, payload, **options))


def _outcome(context: ContextBase, runtime: _TestRuntime, value: Any, error: BaseException | None) -> Outcome:
    task = context.task
    end: End | None
    if error is not None and context.why is not None:
        end = _ends.stopped(task, context.why, error)
    elif error is not None:
        end = _ends.failed(task, error)
    elif isinstance(value, Ending):
        end = _ends.ended_otherwise(task, value, runtime.max_payload)
    else:
        end = _ends.completed(task, value, runtime.max_payload)
    if end is None:
        return Outcome("lost", {}, error=error)
    payload = next((data for target, name, data in end.references if name == "payload"), b"")
    return Outcome(
        end.entry["outcome"],
        end.entry,
        payload,
        error,
        runtime.progress,
        runtime.checkpoints,
        list(context._spawned or ()),
        runtime.submitted,
    )
