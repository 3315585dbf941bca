"""Batches: handlers that work through a cursor of positions and continue after a crash."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from onward import _payload
from onward._context_base import ContextBase
from onward.context import AsyncContext, Context
from onward.errors import Fail

__all__ = ["Batch"]


class Batch:
    """The positions of a task's cursor that are not done yet.

    The payload is `{"from": 0, "to": 1000}`, or an object with such a `cursor`; `to` is excluded.
    Iterate over it: `for position in batch`, or `async for` in an async handler. After every
    `every` positions, the position and `partial` become the task's checkpoint, so that the next
    attempt continues there. The loop raises Cancelled when the attempt should stop.
    """

    def __init__(self, context: ContextBase, every: int) -> None:
        self.payload: Any = _read(context)
        cursor = self.payload.get("cursor", self.payload)
        self.start, self.end = _bounds(context, cursor)
        self.position = self.start
        """The first position that is not done."""
        self.partial: Any = None
        """The result so far: any JSON value. It is the result of a handler that returns None."""
        self._context = context
        self._every = every
        saved = context.last_checkpoint()
        if isinstance(saved, dict) and isinstance(saved.get("position"), int):
            self.position = min(max(saved["position"], self.start), self.end)
            self.partial = saved.get("partial")

    def __len__(self) -> int:
        """The number of positions that are not done."""
        return self.end - self.position

    def _saved(self) -> dict[str, Any]:
        return {"position": self.position, "partial": self.partial}

    def _advance(self) -> bool:
        """Marks a position as done. Returns whether a checkpoint is due."""
        self.position += 1
        done, total = self.position - self.start, self.end - self.start
        self._context.progress(done / total)
        return done % self._every == 0 and self.position < self.end

    def __iter__(self) -> Iterator[int]:
        """Returns the positions, for a sync handler."""
        context = self._context
        if not isinstance(context, Context):
            raise TypeError("an async handler iterates with `async for`")
        while self.position < self.end:
            context.check()
            yield self.position
            if self._advance():
                context.checkpoint(self._saved())

    async def __aiter__(self) -> AsyncIterator[int]:
        """Returns the positions, for an async handler."""
        context = self._context
        if not isinstance(context, AsyncContext):
            raise TypeError("a sync handler iterates with `for`")
        while self.position < self.end:
            context.check()
            yield self.position
            if self._advance():
                await context.checkpoint(self._saved())


def _read(context: ContextBase) -> dict[str, Any]:
    try:
        payload = _payload.decode_json(context.task.payload)
    except _payload.PayloadError as error:
        raise Fail(str(error)) from error
    if not isinstance(payload, dict):
        raise Fail(f"the payload of a batch is {payload!r:.80}; it must be an object with `from` and `to`")
    return payload


def _bounds(context: ContextBase, cursor: Any) -> tuple[int, int]:
    start, end = (cursor.get("from"), cursor.get("to")) if isinstance(cursor, dict) else (None, None)
    if type(start) is not int or type(end) is not int or end < start:
        raise Fail(
            f"the cursor of task {context.task_id} is {cursor!r:.80}; it must be"
            ' {"from": integer, "to": integer} with `to` not before `from`'
        )
    return start, end
