"""Orchestrations: async functions that survive crashes.

```python
@app.orchestration("order")
async def order(ctx: OrchestrationContext, order: Order) -> str:
    shelf = await ctx.task("reserve", {"item": order.item})
    try:
        cents = await ctx.wait_signal("paid", timeout=3 * 24 * 3600)
    except TimeoutError:
        await ctx.task("release", {"shelf": shelf})
        raise Fail("nobody paid within three days")
    return f"{cents} cents for shelf {shelf}"
```

The code may run in another process from one line to the next: it is replayed over the history of
what it awaited. So everything that may differ must come from its context.
"""

from __future__ import annotations

import datetime
import inspect
import logging
import typing
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from onward import _guard, _payload
from onward._futures import First, Future, gather
from onward._kept import KeptReplays
from onward._messages import TurnMessage
from onward._replay import ContinueAsNew, Replay
from onward._requests import new_task
from onward._turn import TurnReply, read_events
from onward.errors import Fail
from onward.tasks import NewTask

__all__ = ["Code", "OrchestrationContext"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class OrchestrationContext:
    """The calls and values of an orchestration that its code may await and read.

    `task`, `child`, `sleep` and `wait_signal` begin at the call and are awaited then or later.
    """

    def __init__(self, replay: Replay, kind: str, task_id: str) -> None:
        self._replay = replay
        self.kind = kind
        """The kind of the orchestration."""
        self.task_id = task_id
        """The id of the orchestration."""

    # Operations.

    def task(self, kind: str | NewTask, payload: Any = None, *, result: Any = Any, **options: Any) -> Future[Any]:
        """Submits a task; its result is read as the type `result`. `options` are the fields of NewTask.

        The await raises TaskFailed if the task does not complete after all its attempts.
        """
        return self._submit(new_task(kind, payload, options), result, orchestration=False)

    def child(self, kind: str | NewTask, payload: Any = None, *, result: Any = Any, **options: Any) -> Future[Any]:
        """Starts another orchestration, and is otherwise like `task`."""
        return self._submit(new_task(kind, payload, options), result, orchestration=True)

    def _submit(self, task: NewTask, result: Any, *, orchestration: bool) -> Future[Any]:
        operation = self._replay.submit(task, orchestration=orchestration)
        operation.decode = _payload.decoder_for(result)
        return operation

    def sleep(self, seconds: float) -> Future[None]:
        """Waits for a time, across crashes and restarts."""
        if not 0 <= seconds < 1e9:
            raise ValueError(f"seconds is {seconds}; it must be from 0 to 1e9")
        return self._replay.timer(self._replay.now_us + round(seconds * 1_000_000))

    def wait_signal(self, name: str, *, timeout: float | None = None, result: Any = Any) -> Future[Any]:
        """Waits for a signal, which may have come before. Its payload is read as the type `result`.

        The await raises TimeoutError if none comes within `timeout` seconds.
        """
        signal = self._replay.wait_signal(name, _payload.decoder_for(result))
        if timeout is None:
            return signal
        return self._replay.future_of(self._within(signal, name, timeout))

    async def _within(self, signal: Future[Any], name: str, timeout: float) -> Any:
        index, value = await self.first(signal, self.sleep(timeout))
        if index == 1:
            raise TimeoutError(f"no signal `{name}` came within {timeout} s")
        return value

    def gather(self, *awaited: Awaitable[Any]) -> Future[list[Any]]:
        """Waits for all of them, and returns their results in this order. An error cancels the others."""
        return gather(self._replay.scheduler, awaited)

    def first(self, *awaited: Awaitable[Any]) -> Future[tuple[int, Any]]:
        """Waits for the first of them, and returns its index and result. The others are cancelled."""
        return First(self._replay.scheduler, awaited)

    def continue_as_new(self, payload: Any = None) -> NoReturn:
        """Ends this code and begins it again with another payload and an empty history.

        An endless orchestration needs it, because its history would grow beyond its bound. Signals
        that were not taken stay.
        """
        raise ContinueAsNew(b"" if payload is None else _payload.encode(payload))

    # Inputs that are the same in every replay.

    def now(self) -> datetime.datetime:
        """Returns the time at which the turn began, in UTC."""
        return _EPOCH + datetime.timedelta(microseconds=self._replay.now_us)

    def random(self) -> float:
        """Returns a random number from 0 to below 1."""
        return (self._replay.draw() >> 11) / (1 << 53)

    def uuid(self) -> uuid.UUID:
        """Returns a random UUID of version 4."""
        return uuid.UUID(int=(self._replay.draw() << 64) | self._replay.draw(), version=4)

    @property
    def is_replaying(self) -> bool:
        """True if this part of the code has run before. Use it for logging only."""
        return self._replay.is_replaying

    @property
    def cancel_requested(self) -> bool:
        """True if cancellation was requested. The code gets Cancelled where it awaits then."""
        return self._replay.cancel_requested

    @property
    def logger(self) -> logging.Logger:
        """A logger that is silent in a replay, so that each line is logged once."""
        return _SILENT if self._replay.is_replaying else logging.getLogger(f"onward.{self.kind}")


_SILENT = logging.Logger("onward.replay", logging.CRITICAL + 1)


class Code:
    """The code of a kind of orchestrations."""

    def __init__(self, kind: str, function: Callable[..., Any]) -> None:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"the orchestration `{kind}` is not an async function; write `async def`")
        parameters = list(inspect.signature(function).parameters.values())
        if not 1 <= len(parameters) <= 2:
            raise TypeError(
                f"the orchestration `{kind}` has {len(parameters)} parameters; it has (ctx) or (ctx, input)"
            )
        self.kind = kind
        self._function = function
        self._has_input = len(parameters) == 2
        hints = typing.get_type_hints(function) if self._has_input else {}
        self._decode = _payload.decoder_for(hints.get(parameters[-1].name, Any)) if self._has_input else None
        self._kept = KeptReplays()
        _guard.install()

    def begin(self, payload: bytes, task_id: str) -> Replay:
        """Returns the code before its first event."""
        return Replay(lambda replay: self._run(replay, payload, task_id))

    def turn(self, turn: TurnMessage, payload: bytes, task_id: str, *, keeps: bool) -> TurnReply | None:
        """Runs a turn, and keeps the code after it if it waits.

        Returns None if the code of a turn with new events only is not kept here.
        """
        events = [event for part in turn.events for event in read_events(part)]
        kept = self._kept.take(task_id, turn.generation, turn.position)
        if turn.new_only and kept is None:
            return None
        if not turn.new_only and kept is not None:
            # The history may be another one of this length, because a turn of this worker was refused.
            kept.close()
            kept = None
        replay = kept or self.begin(payload, task_id)
        waits = False
        try:
            reply = replay.run(events, turn.position) if kept is None else replay.proceed(events)
            waits = keeps and reply.end["do"] == "wait"
        finally:
            if not waits:
                replay.close()
        if waits:
            reply.length = replay.length
            self._kept.keep(task_id, turn.generation, replay)
        return reply

    def forget(self) -> None:
        """Drops the code that is kept."""
        self._kept.clear()

    async def _run(self, replay: Replay, payload: bytes, task_id: str) -> Any:
        context = OrchestrationContext(replay, self.kind, task_id)
        if self._decode is None:
            return await self._function(context)
        try:
            value = self._decode(payload)
        except _payload.PayloadError as error:
            raise Fail(str(error)) from error
        return await self._function(context, value)
