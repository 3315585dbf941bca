"""The context of an attempt: what a handler knows about its task, and what it can do beside its work."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

from onward import _payload
from onward._context_base import ContextBase
from onward._requests import new_task, read_children, read_items, read_result, read_submitted, result_fields
from onward.errors import Cancelled
from onward.results import Child, TaskResult
from onward.tasks import NewTask, Submitted

__all__ = ["AsyncContext", "Context"]


class Context(ContextBase):
    """The context of a sync handler."""

    def wait(self, seconds: float) -> bool:
        """Waits, but not beyond the request to stop. Returns whether the attempt should stop."""
        stopped = threading.Event()
        self.on_cancel(stopped.set)
        stopped.wait(seconds)
        self._forget_callback(stopped.set)
        return self.cancelled

    def sleep(self, seconds: float) -> None:
        """Waits like `time.sleep`, but raises Cancelled when the attempt should stop."""
        self.wait(seconds)
        self.check()

    def checkpoint(self, value: Any) -> None:
        """Keeps a value for the next attempt. It is durable when the call returns."""
        self._checkpoint(value).result()
        self._saved = _payload.encode(value)

    def submit(self, task: str | NewTask, payload: Any = None, *, child: bool = False, **options: Any) -> Submitted:
        """Submits a task at once; give it a key, because the next attempt may submit it again.

        With `child` it becomes a child of this task. `options` are the fields of NewTask.
        """
        return self.submit_many([new_task(task, payload, options)], child=child)[0]

    def submit_many(self, tasks: Sequence[NewTask], *, child: bool = False) -> list[Submitted]:
        """Submits up to 1 024 tasks in one commit: all or none."""
        return read_submitted(self._submit(tasks, child).result())

    def result(self, task: str, *, wait: float = 0.0) -> TaskResult:
        """Returns the state and result of a task, after waiting up to `wait` seconds (60 at most)."""
        return read_result(task, self._ask("result", result_fields(task, wait)).result())

    def children(self) -> list[Child]:
        """Returns the children of this task, in the order of their ids."""
        children: list[Child] = []
        after: dict[str, Any] | None = {}
        while after is not None:
            reply = self._ask("children", {"task": self.task_id, **after}).result()
            after = read_children(reply, children)
        return children

    def items(self) -> list[bytes]:
        """Returns the payloads of the aggregated tasks of which this one is the batch."""
        items: list[bytes] = []
        after: dict[str, Any] | None = {}
        while after is not None:
            after = read_items(self._ask("items", {"task": self.task_id, **after}).result(), items)
        return items


class AsyncContext(ContextBase):
    """The context of an async handler."""

    @contextlib.asynccontextmanager
    async def cancel_scope(self) -> AsyncIterator[None]:
        """Cancels what is awaited in its body when the attempt should stop, and raises Cancelled."""
        self.check()
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("cancel_scope works only in a task of the event loop")
        loop, fired = asyncio.get_running_loop(), False

        def cancel() -> None:
            nonlocal fired
            if not fired:
                fired = True
                task.cancel()

        def from_any_thread() -> None:
            loop.call_soon_threadsafe(lambda: cancel() if open_scope else None)

        open_scope = True
        self.on_cancel(from_any_thread)
        try:
            yield
        except asyncio.CancelledError:
            if not fired:
                raise
            if sys.version_info >= (3, 11):
                task.uncancel()
            raise Cancelled(self._stop or "cancelled") from None
        finally:
            open_scope = False
            self._forget_callback(from_any_thread)

    async def wait(self, seconds: float) -> bool:
        """Waits, but not beyond the request to stop. Returns whether the attempt should stop."""
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()

        def from_any_thread() -> None:
            loop.call_soon_threadsafe(stopped.set)

        self.on_cancel(from_any_thread)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(stopped.wait(), seconds)
        self._forget_callback(from_any_thread)
        return self.cancelled

    async def sleep(self, seconds: float) -> None:
        """Waits like `asyncio.sleep`, but raises Cancelled when the attempt should stop."""
        await self.wait(seconds)
        self.check()

    async def checkpoint(self, value: Any) -> None:
        """Keeps a value for the next attempt. It is durable when the call returns."""
        await asyncio.wrap_future(self._checkpoint(value))
        self._saved = _payload.encode(value)

    async def submit(
        self, task: str | NewTask, payload: Any = None, *, child: bool = False, **options: Any
    ) -> Submitted:
        """Submits a task at once; give it a key, because the next attempt may submit it again.

        With `child` it becomes a child of this task. `options` are the fields of NewTask.
        """
        return (await self.submit_many([new_task(task, payload, options)], child=child))[0]

    async def submit_many(self, tasks: Sequence[NewTask], *, child: bool = False) -> list[Submitted]:
        """Submits up to 1 024 tasks in one commit: all or none."""
        return read_submitted(await asyncio.wrap_future(self._submit(tasks, child)))

    async def result(self, task: str, *, wait: float = 0.0) -> TaskResult:
        """Returns the state and result of a task, after waiting up to `wait` seconds (60 at most)."""
        return read_result(task, await asyncio.wrap_future(self._ask("result", result_fields(task, wait))))

    async def children(self) -> list[Child]:
        """Returns the children of this task, in the order of their ids."""
        children: list[Child] = []
        after: dict[str, Any] | None = {}
        while after is not None:
            asked = self._ask("children", {"task": self.task_id, **after})
            after = read_children(await asyncio.wrap_future(asked), children)
        return children

    async def items(self) -> list[bytes]:
        """Returns the payloads of the aggregated tasks of which this one is the batch."""
        items: list[bytes] = []
        after: dict[str, Any] | None = {}
        while after is not None:
            asked = self._ask("items", {"task": self.task_id, **after})
            after = read_items(await asyncio.wrap_future(asked), items)
        return items
