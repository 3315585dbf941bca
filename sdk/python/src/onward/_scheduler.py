"""The scheduler: which received task starts when, on a thread or on the event loop."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from onward._context_base import ContextBase
from onward._registry import Entry


class Scheduler:
    """Starts tasks in their order while slots are free.

    `run` runs a sync handler and sends the end of its attempt. `run_async` does so for an async one,
    and calls `finished`. Threads are
    made when they are needed, at most one for each slot.
    """

    def __init__(
        self,
        slots: int,
        loop: asyncio.AbstractEventLoop,
        run: Callable[[ContextBase], None],
        run_async: Callable[[ContextBase], Coroutine[Any, Any, None]],
    ) -> None:
        self._slots = slots
        self._loop = loop
        self._run = run
        self._run_async = run_async
        self._lock = threading.Lock()
        self._ready: deque[ContextBase] = deque()
        self._limited: set[Entry] = set()
        self._running = 0
        self._threads: deque[ContextBase] = deque()
        self._tokens: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread_count = self._idle = 0
        self._waking = False
        self._loop_tasks: deque[ContextBase] = deque()
        self._loop_called = False

    def add(self, contexts: list[ContextBase]) -> None:
        """Takes received tasks. Those beyond the slots wait."""
        with self._lock:
            self._ready.extend(contexts)
            self._start()
            wake, call = self._wakes()
        self._act(wake, call)

    def release(self) -> list[ContextBase]:
        """Returns the tasks that have not started, and forgets them."""
        with self._lock:
            waiting = list(self._ready)
            self._ready.clear()
            for entry in self._limited:
                waiting += entry.parked
                entry.parked.clear()
            self._limited.clear()
        return waiting

    def discard(self, context: ContextBase) -> bool:
        """Forgets a task that has not started. Returns whether there was one."""
        with self._lock:
            for waiting in (self._ready, context._entry.parked):
                if context in waiting:
                    waiting.remove(context)
                    return True
        return False

    def finished(self, contexts: list[ContextBase]) -> None:
        """Frees the slots of async handlers and starts the next tasks."""
        with self._lock:
            for context in contexts:
                self._free(context)
            wake, call = self._wakes()
        self._act(wake, call)

    def _free(self, context: ContextBase) -> None:
        self._running -= 1
        entry: Entry = context._entry
        entry.running -= 1
        if entry.parked:
            self._ready.appendleft(entry.parked.popleft())
        self._start()

    def _start(self) -> None:
        ready = self._ready
        while ready and self._running < self._slots:
            context = ready.popleft()
            entry: Entry = context._entry
            limit = entry.options.limit
            if limit is not None and entry.running >= limit:
                entry.parked.append(context)
                self._limited.add(entry)
                continue
            entry.running += 1
            self._running += 1
            (self._loop_tasks if entry.is_async else self._threads).append(context)

    # A thread that takes a task while others wait wakes the next thread, and so on. So one thread
    # runs many short handlers without a switch, and handlers that block get a thread each.

    def _wakes(self) -> tuple[bool, bool]:
        if not self._threads and not self._loop_tasks:
            return False, False
        wake = bool(self._threads) and not self._waking and (self._idle > 0 or self._thread_count < self._slots)
        if wake:
            self._waking = True
            if self._idle == 0:
                self._thread_count += 1
                threading.Thread(target=self._work, name="onward-handler", daemon=True).start()
        call = bool(self._loop_tasks) and not self._loop_called
        if call:
            self._loop_called = True
        return wake and self._idle > 0, call

    def _act(self, wake: bool, call: bool) -> None:
        # Outside the lock, because the woken thread takes it at once.
        if wake:
            self._tokens.put(True)
        if call:
            self._loop.call_soon_threadsafe(self._start_on_loop)

    def _work(self) -> None:
        context: ContextBase | None = None
        woken, was_idle = True, False
        while True:
            with self._lock:
                if woken:
                    self._waking = woken = False
                if was_idle:
                    self._idle -= 1
                    was_idle = False
                if context is not None:
                    self._free(context)
                context = self._threads.popleft() if self._threads else None
                wake, call = self._wakes()
                if context is None:
                    self._idle += 1
            self._act(wake, call)
            if context is not None:
                self._run(context)
                continue
            self._tokens.get()
            woken = was_idle = True

    def _start_on_loop(self) -> None:
        with self._lock:
            contexts = list(self._loop_tasks)
            self._loop_tasks.clear()
            self._loop_called = False
        for context in contexts:
            task = _start(self._run_async(context), self._loop)
            context._abort = task.cancel


if sys.version_info >= (3, 12):

    def _start(run: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
        """Starts a coroutine at once. One that does not wait costs no turn of the loop."""
        return asyncio.Task(run, loop=loop, eager_start=True)

else:

    def _start(run: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
        """Starts a coroutine at the next turn of the loop."""
        return loop.create_task(run)
