"""Runs a handler without a gateway, for tests.

```python
from onward.testing import run

def test_greet():
    assert run(app, "greet", "Ada").value() == "Hello, Ada"
```
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onward import _ends, _payload
from onward._context_base import ContextBase
from onward._ends import End, Ending
from onward._frames import PAYLOAD_BYTES, Header
from onward._messages import Reply, TaskMessage, TaskOptions
from onward._turn import data_of, read_events, text_of
from onward.errors import OnwardError
from onward.tasks import NewTask
from onward.worker import Worker

__all__ = ["OrchestrationTest", "Outcome", "check_history", "run", "run_async"]


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


class OrchestrationTest:
    """An orchestration without a gateway: the test ends its tasks, sends signals and moves the clock.

    Each of these replays the code from its beginning, so that a test shows that it is deterministic.

    ```python
    def test_order():
        order = OrchestrationTest(app, "order", {"item": "tea"})
        order.complete("reserve", 4)
        order.signal("paid", 1999)
        assert order.result == "1999 cents for shelf 4"
    ```
    """

    def __init__(self, worker: Worker, kind: str, payload: Any = None, *, now: float = 1_767_225_600.0) -> None:
        self._code = worker.orchestration_of(kind)
        self._payload = b"" if payload is None else _payload.encode(payload)
        self._now_us = round(now * 1_000_000)
        self.history: list[dict[str, Any]] = []
        """The events so far, as the protocol writes them."""
        self.tasks: dict[int, dict[str, Any]] = {}
        """The tasks that have not ended, by their operations, with the fields of their submit."""
        self.timers: dict[int, int] = {}
        """The times of the timers that run, in microseconds."""
        self.waits: list[str] = []
        """The names of the signals for which the code waits."""
        self.generation = 0
        self._end: dict[str, Any] = {"do": "wait"}
        self._begin([])

    def _begin(self, carried: list[dict[str, Any]]) -> None:
        self.history = list(carried)
        self._turn([{"e": "started", "at_us": self._now_us, "seed": "7"}])

    # Steps of a test.

    def complete(self, kind: str, result: Any = None) -> None:
        """Ends the oldest open task of a kind with a result."""
        self._end_task(kind, {"state": "completed", "result": text_of(_payload.encode(result))})

    def fail(self, kind: str, error: str = "it failed", *, state: str = "failed") -> None:
        """Ends the oldest open task of a kind without a result."""
        self._end_task(kind, {"state": state, "error": error})

    def _end_task(self, kind: str, fields: dict[str, Any]) -> None:
        for operation, task in self.tasks.items():
            if task["kind"] == kind:
                return self._arrive({"e": "task_ended", "operation": operation, **fields})
        open_kinds = ", ".join(task["kind"] for task in self.tasks.values()) or "none"
        raise AssertionError(f"no open task of the kind `{kind}`; open: {open_kinds}")

    def signal(self, name: str, payload: Any = None) -> None:
        """Sends a signal."""
        self._arrive({"e": "signal", "name": name, "payload": text_of(_payload.encode(payload))})

    def cancel(self) -> None:
        """Requests cancellation."""
        self._arrive({"e": "cancel_requested"})

    def advance(self, seconds: float) -> None:
        """Moves the clock, and fires each timer at its time."""
        until = self._now_us + round(seconds * 1_000_000)
        while self.timers and self.state == "waiting":
            operation, at = min(self.timers.items(), key=lambda timer: (timer[1], timer[0]))
            if at > until:
                break
            self._now_us = max(self._now_us, at)
            self._arrive({"e": "timer_fired", "operation": operation})
        self._now_us = until

    # The state of the orchestration.

    @property
    def state(self) -> str:
        """`waiting`, `completed`, `failed` or `cancelled`."""
        names = {"wait": "waiting", "complete": "completed", "fail": "failed"}
        end = str(self._end["do"])
        return names.get(end, end)

    @property
    def result(self) -> Any:
        """The result. Raises AssertionError if the code has none."""
        if self.state != "completed":
            raise AssertionError(f"the orchestration is {self.state}: {self.error or self.waits}")
        return _payload.decode_json(data_of(self._end["result"]))

    @property
    def error(self) -> str:
        """The error of a failed orchestration; empty if it has not failed."""
        return str(self._end.get("error", ""))

    def payload_of(self, kind: str) -> Any:
        """Returns the payload of the oldest open task of a kind."""
        task = next(task for task in self.tasks.values() if task["kind"] == kind)
        return _payload.decode_json(data_of(task["data"]))

    # Turns.

    def _arrive(self, event: dict[str, Any]) -> None:
        if self.state != "waiting":
            raise AssertionError(f"the orchestration is {self.state} already")
        self._turn([{"e": "turn", "at_us": self._now_us}, event])

    def _turn(self, arrivals: list[dict[str, Any]]) -> None:
        replay = self._code.begin(self._payload, "1")
        try:
            reply = replay.run([*self.history, *arrivals], len(self.history))
        finally:
            replay.close()
        for index, arrival in enumerate(arrivals[: reply.read]):
            self.history.append(arrival)
            self.tasks.pop(arrival.get("operation", 0), None)
            self.timers.pop(arrival.get("operation", 0), None)
            for decision in reply.decisions:
                if decision["after"] == index:
                    self._record(decision)
        self._end, self.waits = reply.end, reply.waits
        if reply.end["do"] == "continue_as_new":
            self._continue(reply.end)

    def _record(self, decision: dict[str, Any]) -> None:
        operation = decision["operation"]
        if decision["do"] == "task":
            self.tasks[operation] = decision
            self.history.append({"e": "task_submitted", "operation": operation, "kind": decision["kind"]})
        elif decision["do"] == "timer":
            self.timers[operation] = decision["until_us"]
            self.history.append({"e": "timer_started", "operation": operation, "until_us": decision["until_us"]})
        else:
            self.tasks.pop(operation, None)
            self.timers.pop(operation, None)
            self.history.append({"e": "operation_cancelled", "operation": operation})

    def _continue(self, end: dict[str, Any]) -> None:
        self._payload = data_of(end["payload"])
        self.generation += 1
        self.tasks, self.timers = {}, {}
        self._begin([{"e": "signal_carried", **signal} for signal in end.get("signals", [])])


def check_history(worker: Worker, history: str | Path | dict[str, Any]) -> None:
    """Replays a recorded history with the code of a worker: whether new code continues what old code began.

    `history` is the file that `onward orchestration export 1 --output FILE.json` writes, or its
    content. Raises Nondeterminism where the code differs from it.
    """
    recorded = history if isinstance(history, dict) else json.loads(Path(history).read_text())
    events = read_events(json.dumps(recorded["events"]).encode())
    replay = worker.orchestration_of(recorded["kind"]).begin(data_of(recorded["payload"]), "1")
    try:
        replay.run(events, len(events))
    finally:
        replay.close()
