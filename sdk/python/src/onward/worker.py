"""The worker: registers handlers and runs them for a gateway."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from onward import _connect, _registry
from onward._context_base import ContextBase
from onward._frames import PAYLOADS
from onward._outbox import HELD
from onward._registry import Entry, Middleware, Options
from onward._runtime import Runtime
from onward.batch import Batch
from onward.errors import Fail, OnwardError
from onward.orchestration import Code
from onward.tasks import RetryLike

__all__ = ["Handler", "Worker"]

log = logging.getLogger("onward")

DEFAULT_SLOTS = 8

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound=Callable[..., Any])


class Handler:
    """The base of handlers that are classes. `call` has the same parameters as a handler function.

    ```python
    class Resize(Handler):
        kind = "resize"
        retry = 5

        def call(self, image: Image, ctx: Context) -> Size: ...

    app.register(Resize())
    ```
    """

    kind: ClassVar[str]
    limit: ClassVar[int | None] = None
    retry: ClassVar[RetryLike | None] = None
    timeout: ClassVar[float | None] = None
    heartbeat: ClassVar[float | None] = None

    call: Callable[..., Any]


class Worker:
    """A set of handlers, and the connection to the gateway that sends their tasks.

    `gateway` is `child`, `ipc://PATH` or `tcp://HOST:PORT`; by default ONWARD_GATEWAY says it.
    `slots` is the number of handlers that run at once, sync and async together; by default
    ONWARD_SLOTS, which the gateway sets, or else 8. `prefetch` tasks are
    fetched ahead of free slots: it makes short tasks faster, and tasks wait in this process although
    another worker may be idle. `onward work --app` with `--slots` sends no more than that at
    once, so give it the sum of both. `grace` is the time in seconds that running handlers have after
    SIGTERM or SIGINT. `key` is the worker's secret, by default ONWARD_KEY. `state` is any object, as
    `ctx.state` in every handler. `name` appears in logs and lists.
    """

    def __init__(
        self,
        *,
        gateway: str | None = None,
        name: str = "",
        slots: int | None = None,
        prefetch: int = 0,
        grace: float = 30.0,
        key: str | None = None,
        state: Any = None,
    ) -> None:
        if slots is None:
            slots = _slots_of(os.environ)
        if not 1 <= slots + prefetch <= HELD or slots < 1 or prefetch < 0:
            raise ValueError(
                f"slots is {slots} and prefetch is {prefetch}; slots must be at least 1, and both together"
                f" at most {HELD}: start more processes for more"
            )
        if grace < 0:
            raise ValueError(f"grace is {grace}; it must be at least 0 seconds")
        self.state = state
        self._gateway, self._name, self._key = gateway, name, key
        self._slots, self._prefetch, self._grace = slots, prefetch, grace
        self._entries: dict[str, Entry] = {}
        self._orchestrations: dict[str, Code] = {}
        self._middleware: list[Middleware] = []
        self._runtime: Runtime | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # Registration.

    def handler(
        self,
        kind: str,
        *,
        limit: int | None = None,
        retry: RetryLike | None = None,
        timeout: float | None = None,
        heartbeat: float | None = None,
    ) -> Callable[[F], F]:
        """Registers a function as the handler of a kind.

        The function takes the payload and the context, or only the payload, or nothing. The
        annotation of the payload says how it is read: a dataclass, a pydantic model, `bytes`, or
        any JSON type. Its result becomes JSON, or stays as it is if it is bytes.

        At most `limit` of the worker's handlers of this kind run at once. `retry`, `timeout` and
        `heartbeat` (seconds) apply to tasks that were submitted without their own.
        """

        def register(function: F) -> F:
            self._add(_registry.entry_of(kind, function, Options(limit, retry, timeout, heartbeat)))
            return function

        return register

    def decision(
        self,
        kind: str,
        *,
        choices: Iterable[str],
        limit: int | None = None,
        retry: RetryLike | None = None,
        timeout: float | None = None,
    ) -> Callable[[F], F]:
        """Registers a function that chooses which steps of a workflow come next.

        It takes a Step (input and earlier results) and the context, and returns one of `choices`, a
        list of them, or None for no step. A choice outside them fails the step.
        """
        allowed = tuple(choices)

        def register(function: F) -> F:
            self._add(
                _registry.entry_of(
                    kind,
                    function,
                    Options(limit, retry, timeout),
                    read=lambda context: context.step,
                    write=lambda chosen: _chosen(kind, chosen, allowed),
                )
            )
            return function

        return register

    def batch(
        self,
        kind: str,
        *,
        every: int = 100,
        limit: int | None = None,
        retry: RetryLike | None = None,
        timeout: float | None = None,
        heartbeat: float | None = None,
    ) -> Callable[[F], F]:
        """Registers a function that works through a cursor, with a checkpoint after `every` positions.

        It takes a Batch and the context.
        """
        if every < 1:
            raise ValueError(f"every is {every}; it must be at least 1 position")

        def register(function: F) -> F:
            entry = _registry.entry_of(
                kind, function, Options(limit, retry, timeout, heartbeat), read=lambda context: _batch(context, every)
            )
            entry.call = _with_partial(entry)
            self._add(entry)
            return function

        return register

    def orchestration(self, kind: str) -> Callable[[F], F]:
        """Registers an async function as the code of a kind of orchestrations.

        It takes an OrchestrationContext, and the input if it wants it. It may only await what its
        context returns, and is replayed when a message arrives; see onward.orchestration.
        """

        def register(function: F) -> F:
            code = Code(kind, function)
            self._add(_registry.orchestration_entry(code))
            self._orchestrations[kind] = code
            return function

        return register

    def orchestration_of(self, kind: str) -> Code:
        """Returns the code of an orchestration. For the test bed."""
        code = self._orchestrations.get(kind)
        if code is None:
            known = ", ".join(self._orchestrations) or "none"
            raise KeyError(f"no orchestration of the kind `{kind}`; kinds: {known}")
        return code

    def register(self, handler: Handler) -> None:
        """Registers an object of a class of handlers."""
        kind = getattr(handler, "kind", None)
        if not isinstance(kind, str):
            raise TypeError(f'{type(handler).__name__} has no `kind`; write `kind = "name"` in the class')
        options = Options(handler.limit, handler.retry, handler.timeout, handler.heartbeat)
        self._add(_registry.entry_of(kind, handler.call, options))

    def middleware(self, function: M) -> M:
        """Registers a generator function that runs around every handler.

        It takes the context and yields once. What the handler raises is raised at the `yield`, and
        its result is the value of it. Raise something else there to change the end of the attempt.

        ```python
        @app.middleware
        def timed(ctx):
            began = time.monotonic()
            try:
                yield
            finally:
                ctx.logger.info("took %.3f s", time.monotonic() - began)
        ```
        """
        self._middleware.append(function)
        return function

    def _add(self, entry: Entry) -> None:
        if self._runtime is not None:
            raise RuntimeError(f"the worker runs already; register `{entry.kind}` before")
        if entry.kind in self._entries:
            raise ValueError(f"the kind `{entry.kind}` has a handler already")
        if len(self._entries) >= PAYLOADS:
            raise ValueError(f"a worker has at most {PAYLOADS} kinds")
        self._entries[entry.kind] = entry

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds that have a handler."""
        return list(self._entries)

    def call_of(self, kind: str) -> tuple[Entry, Callable[[Any], Any]]:
        """Returns the entry of a kind and its call within the middleware. For the test harness."""
        entry = self._entries.get(kind)
        if entry is None:
            raise KeyError(f"no handler for the kind `{kind}`; kinds: {', '.join(self._entries) or 'none'}")
        return entry, _registry.wrap(entry, self._middleware)

    # Running.

    def run(self) -> None:
        """Runs until SIGTERM, SIGINT, `stop`, or the gateway's drain of a child.

        Running handlers have `grace` seconds then. Raises SystemExit(1) if the gateway refuses the
        worker, or the parent of a child has died. Logs to standard error if logging is not set up.
        """
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        try:
            asyncio.run(self.serve())
        except (OnwardError, OSError, ValueError) as error:
            log.error("the worker ends: %s", error)
            raise SystemExit(1) from None

    async def serve(self) -> None:
        """Does what `run` does, on a running event loop.

        Raises Refused if the gateway refuses the worker, and OSError if the parent of a child has
        died.
        """
        if self._runtime is not None:
            raise RuntimeError("the worker runs already")
        if not self._entries:
            raise ValueError('the worker has no handler; register one with `@app.handler("kind")`')
        address = _connect.parse_address(self._gateway, os.environ)
        self._loop = asyncio.get_running_loop()
        runtime = self._runtime = Runtime(
            address=address,
            entries={kind: self._wrapped(kind) for kind in self._entries},
            name=self._name,
            key=self._key or os.environ.get("ONWARD_KEY"),
            slots=self._slots,
            prefetch=self._prefetch,
            grace=self._grace,
            state=self.state,
            loop=self._loop,
        )
        try:
            with _Signals(self._loop, runtime.stop):
                runtime.start()
                error = await runtime.closed
                await runtime.wait_for_handlers()
        finally:
            self._runtime = self._loop = None
            for code in self._orchestrations.values():
                code.forget()
        if error is not None:
            raise error

    def _wrapped(self, kind: str) -> Entry:
        entry, call = self.call_of(kind)
        return Entry(kind, entry.is_async, call, entry.options, entry.header, is_orchestration=entry.is_orchestration)

    def stop(self) -> None:
        """Ends `run` as SIGTERM does. May be called from any thread.

        It has no effect before the worker runs.
        """
        runtime, loop = self._runtime, self._loop
        if runtime is not None and loop is not None:
            loop.call_soon_threadsafe(runtime.stop)


def _slots_of(environment: Mapping[str, str]) -> int:
    text = environment.get("ONWARD_SLOTS")
    if text is None:
        return DEFAULT_SLOTS
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"ONWARD_SLOTS is `{text}`; it must be an integer of at least 1")
    # A gateway may allow more; this process holds no more than its bound.
    return min(int(text), HELD)


class _Signals:
    """The time in which SIGTERM and SIGINT stop the worker. Other threads than the main one cannot."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
        self._loop, self._stop = loop, stop
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.getsignal(number)
                self._handle(number)

    def _handle(self, number: signal.Signals) -> None:
        try:
            # It wakes a loop that waits, also if another thread got the signal.
            self._loop.add_signal_handler(number, self._on_signal, number)
        except NotImplementedError:  # on Windows
            signal.signal(number, lambda *_: self._loop.call_soon_threadsafe(self._on_signal, number))

    def _on_signal(self, number: signal.Signals) -> None:
        log.info("%s: the worker drains", number.name)
        self._stop()

    def __exit__(self, *_: object) -> None:
        for number, previous in self._previous.items():
            try:
                self._loop.remove_signal_handler(number)
            except NotImplementedError:  # on Windows
                pass
            signal.signal(number, previous)


def _chosen(kind: str, chosen: Any, allowed: tuple[str, ...]) -> dict[str, list[str]]:
    names = [] if chosen is None else [chosen] if isinstance(chosen, str) else list(chosen)
    for name in names:
        if name not in allowed:
            raise Fail(f"the decision `{kind}` chose {name!r:.80}; its choices are {', '.join(allowed)}")
    return {"chosen": names}


def _batch(context: ContextBase, every: int) -> Batch:
    batch = Batch(context, every)
    context.local["onward.batch"] = batch
    return batch


def _with_partial(entry: Entry) -> Callable[[Any], Any]:
    """Returns the call of a batch's handler, of which the partial result stands for None."""
    call = entry.call

    def partial(context: ContextBase, result: Any) -> Any:
        batch = context.local.get("onward.batch")
        return batch.partial if result is None and batch is not None else result

    if not entry.is_async:
        return lambda context: partial(context, call(context))

    async def call_async(context: Any) -> Any:
        return partial(context, await call(context))

    return call_async
