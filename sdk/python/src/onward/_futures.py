"""Futures and coroutines of an orchestration, which run in a fixed order and without an event loop."""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar, cast

from onward.errors import Cancelled, NotDeterministic

T = TypeVar("T")

STEPS = 1_000_000
"""The number of times that coroutines continue after one event, beyond which they count as endless."""


class Future(Generic[T]):
    """A value that comes later. The code of an orchestration awaits it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[Any]], None]] = []

    @property
    def done(self) -> bool:
        """Returns True if the value or an error is there."""
        return self._is_done

    def result(self) -> T:
        """Returns the value, or raises the error. The future must be done."""
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def complete(self, value: Any = None, error: BaseException | None = None) -> None:
        """Ends the future. A second end has no effect."""
        if self._is_done:
            return
        self._is_done, self._value, self._error = True, value, error
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def on_done(self, callback: Callable[[Future[Any]], None]) -> None:
        """Calls back when the future is done, at once if it is."""
        if self._is_done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def cancel(self) -> None:
        """Gives the operation up. What awaits it gets Cancelled."""
        self.complete(error=Cancelled("cancelled"))

    def __await__(self) -> Generator[Future[T], None, T]:
        if not self._is_done:
            yield self
        return self.result()


class Branch(Future[T]):
    """A coroutine that runs beside others of the orchestration."""

    def __init__(self, scheduler: Scheduler, coroutine: Coroutine[Any, Any, T]) -> None:
        super().__init__(scheduler)
        self._coroutine = coroutine
        self._awaited: Future[Any] | None = None
        self._thrown: BaseException | None = None
        scheduler.add(self)

    def cancel(self) -> None:
        """Raises Cancelled where the coroutine awaits, after it has given up what it awaits there."""
        if self._is_done:
            return
        self._thrown = Cancelled("cancelled")
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            awaited.cancel()
        self._scheduler.soon(self)

    def step(self) -> None:
        """Runs the coroutine until it awaits something that is not there."""
        if self._is_done:
            return
        thrown, self._thrown = self._thrown, None
        try:
            awaited = self._coroutine.send(None) if thrown is None else self._coroutine.throw(thrown)
        except StopIteration as stop:
            self.complete(stop.value)
            return
        except BaseException as error:
            self.complete(error=error)
            return
        if not isinstance(awaited, Future):
            foreign = NotDeterministic(
                f"the orchestration awaits a {type(awaited).__name__}, for which no orchestration can wait;"
                " await the operations of its context, and move other work into a task"
            )
            self.complete(error=foreign)
            return
        self._awaited = awaited
        awaited.on_done(self._continue)

    def _continue(self, awaited: Future[Any]) -> None:
        if self._awaited is awaited:
            self._awaited = None
            self._scheduler.soon(self)

    def close(self) -> None:
        """Drops the coroutine where it is."""
        self._coroutine.close()


class Scheduler:
    """Runs branches in the order in which they became ready."""

    def __init__(self) -> None:
        self._ready: deque[Branch[Any]] = deque()
        self._branches: list[Branch[Any]] = []

    def add(self, branch: Branch[Any]) -> None:
        """Begins a branch."""
        self._branches.append(branch)
        self.soon(branch)

    def prune(self) -> None:
        """Forgets the branches that are done."""
        self._branches = [branch for branch in self._branches if not branch.done]

    def close(self) -> None:
        """Drops every branch where it is. What they do then has no effect."""
        for branch in self._branches:
            with contextlib.suppress(BaseException):
                branch.close()

    def soon(self, branch: Branch[Any]) -> None:
        """Lets a branch continue in its turn."""
        self._ready.append(branch)

    def run(self) -> None:
        """Runs until every branch waits."""
        for _ in range(STEPS):
            if not self._ready:
                return
            self._ready.popleft().step()
        raise NotDeterministic("the orchestration goes on without end; await a timer, a task or a signal in its loop")

    def future_of(self, awaited: Awaitable[T]) -> Future[T]:
        """Returns the future of an operation, or of a coroutine, which begins to run."""
        if isinstance(awaited, Future):
            return awaited
        if not isinstance(awaited, Coroutine):
            raise TypeError(f"{type(awaited).__name__} is no operation of an orchestration and no coroutine")
        return Branch(self, awaited)


def gather(scheduler: Scheduler, awaited: tuple[Awaitable[Any], ...]) -> Future[list[Any]]:
    """Returns a future of all values. The first error cancels the others."""
    together: Future[list[Any]] = _Group(scheduler, [scheduler.future_of(one) for one in awaited])
    return together


class _Group(Future[list[Any]]):
    def __init__(self, scheduler: Scheduler, parts: list[Future[Any]]) -> None:
        super().__init__(scheduler)
        self._parts, self._missing = parts, len(parts)
        if not parts:
            self.complete([])
        for part in parts:
            part.on_done(self._ended)

    def _ended(self, part: Future[Any]) -> None:
        self._missing -= 1
        if self._is_done:
            return
        if part._error is not None:
            self._give_up(part._error)
        elif self._missing == 0:
            self.complete([one.result() for one in self._parts])

    def _give_up(self, error: BaseException) -> None:
        self.complete(error=error)
        for part in self._parts:
            if not part.done:
                part.cancel()

    def cancel(self) -> None:
        if not self._is_done:
            self._give_up(Cancelled("cancelled"))


class First(Future[tuple[int, Any]]):
    """The first of several futures that ends, with its index. It cancels the others."""

    def __init__(self, scheduler: Scheduler, awaited: tuple[Awaitable[Any], ...]) -> None:
        super().__init__(scheduler)
        if not awaited:
            raise ValueError("`first` has nothing to wait for; give it at least one operation")
        self._parts = [scheduler.future_of(one) for one in awaited]
        for index, part in enumerate(self._parts):
            part.on_done(functools.partial(self._ended, index))

    def _ended(self, index: int, part: Future[Any]) -> None:
        if self._is_done:
            return
        try:
            self.complete((index, part.result()))
        except BaseException as error:
            self.complete(error=error)
        for other in self._parts:
            if other is not part:
                other.cancel()

    def cancel(self) -> None:
        if not self._is_done:
            self.complete(error=Cancelled("cancelled"))
            for part in self._parts:
                part.cancel()
