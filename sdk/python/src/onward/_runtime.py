"""The running part of a worker: receives tasks, runs handlers, sends their ends."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from onward import _ends, _trace
from onward._connect import Address
from onward._context_base import ContextBase
from onward._ends import End, Ending, TurnEnding
from onward._frames import PAYLOAD_BYTES, Header, ProtocolError, encode
from onward._link import Link
from onward._messages import Drain, Reply, Stop, TaskMessage, Welcome
from onward._outbox import HELD, Checkpoint, Outbox, Request
from onward._registry import STICKY, Entry
from onward._scheduler import Scheduler
from onward._version import __version__
from onward.errors import ForkError, OnwardError

log = logging.getLogger("onward")

ABORT_SECONDS = 5.0
"""The time that handlers have to return after their tokens were cancelled at the end of a drain."""

DRAIN_FRACTION = 0.8
"""The part of the gateway's time limit of a drain after which running handlers are asked to stop."""

FEATURES = ["ask", "headers", "submit"]

TURNS = "turns"
"""The feature of workers with orchestrations."""


class Runtime:
    """One run of a worker, from its first connection to its last."""

    def __init__(
        self,
        *,
        address: Address,
        entries: Mapping[str, Entry],
        name: str,
        key: str | None,
        slots: int,
        prefetch: int,
        grace: float,
        state: Any,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.state = state
        self.max_payload = PAYLOAD_BYTES
        self.features: frozenset[str] = frozenset()
        self.closed: asyncio.Future[Exception | None] = loop.create_future()
        self._address, self._entries, self._name, self._key = address, entries, name, key
        self._slots, self._grace, self._loop = slots, grace, loop
        self._process = os.getpid()
        self._scheduler = Scheduler(slots, loop, self._run, self._run_async)
        self._outbox = Outbox(slots + prefetch, time.monotonic)
        self._outbox.on_idle = self._on_idle
        self._idle = asyncio.Event()
        self._loop_ends: list[tuple[ContextBase, End | None]] = []
        self._link = Link(address, self._outbox, self)
        self._draining: asyncio.Task[None] | None = None
        self._stopping = False
        self._is_forced = False
        self._failure: OnwardError | None = None

    # The life of the run.

    def start(self) -> None:
        """Connects, on a thread of its own."""
        self._link.start()

    def stop(self) -> None:
        """Drains and ends the run. A second call ends it at once. Called on the event loop."""
        if self._stopping:
            self._is_forced = True
            self._link.close()
            return
        self._stopping = True
        if self._draining is None:
            self._begin_drain(self._grace)

    def _begin_drain(self, grace: float) -> None:
        self._draining = self._loop.create_task(self._drain(grace))

    async def _drain(self, grace: float) -> None:
        """Releases what has not started, waits for the rest, and says goodbye."""
        self._idle.clear()
        self._outbox.drain(True)
        for context in self._scheduler.release():
            self._outbox.end(context, _ends.release(context.task, "draining"))
        if not await self._becomes_idle(grace):
            running = list(self._outbox.held.values())
            log.warning("%d tasks still run after %g s: they are asked to stop", len(running), grace)
            for context in running:
                context.request_stop("stopping")
                self._abort(context)
            if not await self._becomes_idle(ABORT_SECONDS):
                # Without `bye`, the gateway treats what is left as that of a crashed worker.
                self._report_stuck()
                self._is_forced = True
                self._link.close()
                return
        last = self._stopping or not self._address.can_reconnect
        self._draining = None
        if not last:
            self._outbox.drain(False)
        self._link.say_bye(last=last)

    async def _becomes_idle(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except asyncio.TimeoutError:
            return False
        return True

    def _report_stuck(self) -> None:
        for context in list(self._outbox.held.values()):
            log.error("task %s of kind `%s` does not stop; it runs again elsewhere", context.task_id, context.kind)
        running, ended = len(self._outbox.held), len(self._outbox.kept)
        self._failure = OnwardError(
            f"{running} tasks did not stop and {ended} ends were not acknowledged; their tasks may run again"
        )

    def _on_idle(self) -> None:
        self._loop.call_soon_threadsafe(self._idle.set)

    # Calls of the link, on its thread.

    def hello(self, session: str | None) -> Header:
        """Returns the first message of a connection."""
        header: Header = {
            "t": "hello",
            "protocol": [1],
            "sdk": "onward-python",
            "version": __version__,
            "language": f"python {platform.python_version()}",
            "name": self._name,
            "kinds": {kind: entry.header for kind, entry in self._entries.items()},
            "slots": self._slots,
            "features": [*FEATURES, TURNS, STICKY] if self._has_turns() else FEATURES,
        }
        if self._key is not None:
            header["key"] = self._key
        if session is not None:
            header["resume"] = {"session": session, "tasks": self._held_tasks()}
        try:
            encode(header)
        except ProtocolError:
            # Tasks with long ids may not all fit. Those left out run again elsewhere.
            header["resume"]["tasks"] = header["resume"]["tasks"][: HELD // 2]
        return header

    def _has_turns(self) -> bool:
        return any("orchestration" in entry.header for entry in self._entries.values())

    def _held_tasks(self) -> list[dict[str, str]]:
        running = [context.task for context in list(self._outbox.held.values())]
        tasks = [{"task": task.task, "fence": task.fence} for task in running]
        tasks += [{"task": task, "fence": fence} for task, fence in list(self._outbox.kept)]
        return tasks[:HELD]

    def welcomed(self, welcome: Welcome) -> None:
        """Takes over what the gateway states."""
        self.max_payload, self.features = welcome.max_payload, welcome.features
        if self._has_turns() and TURNS not in welcome.features:
            log.error("the gateway has no feature `turns`, so no orchestration runs here; upgrade the gateway")
        log.info("connected to %s at %s, session %s", welcome.gateway or "a gateway", self._address, welcome.session)

    def on_tasks(self, tasks: list[TaskMessage]) -> None:
        """Starts tasks, or gives them back if the worker has no handler for them."""
        contexts: list[ContextBase] = []
        for task in tasks:
            entry = self._entries.get(task.kind)
            contexts.append((entry.context_type if entry else ContextBase)(task, self, entry))
        ready = []
        for context in self._outbox.receive(contexts):
            if context._entry is None:
                log.error("no handler for the kind `%s`: task %s is given back", context.kind, context.task_id)
                self._outbox.end(context, _ends.release(context.task, "unknown_kind"))
            elif self._draining is not None:
                self._outbox.end(context, _ends.release(context.task, "draining"))
            else:
                ready.append(context)
        if ready:
            self._scheduler.add(ready)

    def on_stop(self, stop: Stop) -> None:
        """Asks an attempt to stop, and cancels an async handler after its grace."""
        context = self._outbox.held.get(stop.task)
        if context is None or context.task.fence != stop.fence:
            return
        context.request_stop(stop.why)
        if self._scheduler.discard(context):
            self._outbox.end(context, _ends.stopped(context.task, stop.why, asyncio.CancelledError()))
            return
        self._loop.call_soon_threadsafe(self._loop.call_later, stop.grace, self._after_grace, context)

    def _after_grace(self, context: ContextBase) -> None:
        if self._outbox.held.get(context.task_id) is not context:
            return
        if context._abort is None:
            log.error(
                "task %s of kind `%s` still runs after its grace; have the handler read `ctx.cancelled`",
                context.task_id,
                context.kind,
            )
        self._abort(context)

    @staticmethod
    def _abort(context: ContextBase) -> None:
        if context._abort is not None:
            context._abort()

    def on_lost(self, tasks: list[str] | None) -> None:
        """Stops the attempts whose leases have passed on. Their results are dropped."""
        held = self._outbox.held
        for task in list(held) if tasks is None else tasks:
            context = held.get(task)
            if context is not None:
                self.on_stop(Stop(task, context.task.fence, "lost", 0.0))

    def on_drain(self, drain: Drain) -> None:
        """Drains within the gateway's time limit."""
        log.info("the gateway drains: %s", drain.why)
        self._loop.call_soon_threadsafe(self._drain_for_gateway, drain.within * DRAIN_FRACTION)

    def _drain_for_gateway(self, within: float) -> None:
        if self._draining is None:
            self._begin_drain(min(self._grace, within))

    def on_closed(self, error: Exception | None) -> None:
        """Ends the run."""

        def close() -> None:
            if not self.closed.done():
                self.closed.set_result(error or self._failure)

        try:
            self._loop.call_soon_threadsafe(close)
        except RuntimeError:  # the loop is closed already
            log.debug("the connection ended after the event loop")

    async def wait_for_handlers(self) -> None:
        """Waits for handlers that still run after the connection has ended, at most 5 s."""
        if self._is_forced:
            return
        self._idle.clear()
        # No gateway will acknowledge them on this run's connections.
        self._outbox.kept.clear()
        self._outbox.drain(True)
        await self._becomes_idle(ABORT_SECONDS)

    # Running handlers.

    def _run(self, context: ContextBase) -> None:
        entry: Entry = context._entry
        try:
            if context.task.options.trace:
                with _trace.active(context.trace):
                    value = entry.call(context)
            else:
                value = entry.call(context)
        except BaseException as error:
            end = self._end_of_error(context, error)
        else:
            end = self._end_of_value(context, value)
        self._exit_if_forked()
        self._outbox.end(context, end)

    async def _run_async(self, context: ContextBase) -> None:
        entry: Entry = context._entry
        try:
            if context.task.options.trace:
                with _trace.active(context.trace):
                    value = await entry.call(context)
            else:
                value = await entry.call(context)
        except BaseException as error:
            end = self._end_of_error(context, error)
        else:
            end = self._end_of_value(context, value)
        self._loop_ends.append((context, end))
        if len(self._loop_ends) == 1:
            # Attempts that end in one turn of the loop are sent together.
            self._loop.call_soon(self._end_on_loop)

    def _end_on_loop(self) -> None:
        self._exit_if_forked()
        ended, self._loop_ends = self._loop_ends, []
        self._outbox.end_all(ended)
        self._scheduler.finished([context for context, _ in ended])

    def _end_of_value(self, context: ContextBase, value: Any) -> End | None:
        if context._stop == "lost":
            return None
        if isinstance(value, Ending):
            end = _ends.ended_otherwise(context.task, value, self.max_payload)
        elif isinstance(value, TurnEnding):
            return _ends.turn_ended(context.task, value, self.max_payload)
        else:
            end = _ends.completed(context.task, value, self.max_payload)
        return self._finish(context, end)

    def _finish(self, context: ContextBase, end: End) -> End:
        if context._spawned:
            try:
                trace = context.trace if "headers" in self.features else {}
                end = _ends.with_spawned(end, context.task, context._spawned, self.max_payload, trace)
            except ValueError as error:
                end = _ends.failed(context.task, error, retry=False)
        if context.progress_fields:
            end.entry["progress"] = context.progress_fields
        return end

    def _end_of_error(self, context: ContextBase, error: BaseException) -> End | None:
        task, why = context.task, context._stop
        if why is not None:
            if not _ends.is_stop(error):
                log.warning("task %s failed after it was asked to stop", task.task, exc_info=error)
            return _ends.stopped(task, why, error)
        if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, SystemExit)):
            log.error("the handler of task %s raised %s", task.task, type(error).__name__)
        else:
            # The traceback is of use only where the handler did not choose the failure.
            shown = None if isinstance(error, OnwardError) else error
            text = "attempt %d of task %s of kind `%s` failed: %s: %s"
            log.info(text, task.attempt, task.task, task.kind, type(error).__name__, error, exc_info=shown)
        return self._finish(context, _ends.failed(task, error))

    def _exit_if_forked(self) -> None:
        if os.getpid() != self._process:
            # A handler forked, and the child returned from it. The parent's attempt is not its own.
            log.critical("%s", _FORKED)
            os._exit(1)

    # Calls of contexts.

    def touch(self, context: ContextBase) -> None:
        """Sends the context's heartbeat and progress soon."""
        self._outbox.touch(context)

    def save_checkpoint(self, context: ContextBase, payload: bytes) -> Future[None]:
        """Keeps a checkpoint; the future ends when it is durable."""
        checkpoint = Checkpoint(context, payload)
        self._outbox.save_checkpoint(checkpoint)
        return checkpoint.future

    def request(self, header: Header, payloads: list[bytes], *, resend: bool) -> Future[Reply]:
        """Sends a request; the future ends with its reply."""
        request = Request(header, payloads, resend)
        self._outbox.request(request)
        return request.future

    def check_process(self) -> None:
        """Raises ForkError in a process that was forked from the worker's."""
        if os.getpid() != self._process:
            raise ForkError(_FORKED)


_FORKED = (
    "this process was forked from a running worker, whose threads and connection it does not have; start programs"
    ' with `subprocess`, or processes with multiprocessing.get_context("spawn")'
)
