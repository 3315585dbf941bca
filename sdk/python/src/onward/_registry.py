"""Handlers of a worker: how each is called, by its signature and annotations."""

from __future__ import annotations

import functools
import inspect
import typing
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from onward import _payload
from onward._context_base import ContextBase
from onward._ends import Ending, TurnEnding
from onward._messages import NAME_BYTES
from onward.context import AsyncContext, Context
from onward.errors import Fail
from onward.orchestration import Code
from onward.tasks import RetryLike, check_name, milliseconds, retry_of

Middleware = Callable[[Any], Generator[None, Any, Any] | Iterator[None]]
"""A generator function of the context that yields once: before it, the handler has not begun."""

LIMIT = 65_536

STICKY = "sticky"
"""The feature by which a worker keeps the code of orchestrations, and then gets only new events."""


@dataclass(frozen=True)
class Options:
    """Options of a kind, as the decorators take them. Times are in seconds."""

    limit: int | None = None
    retry: RetryLike | None = None
    timeout: float | None = None
    heartbeat: float | None = None

    def to_header(self) -> dict[str, Any]:
        """Returns the options as `hello` writes them; raises ValueError if one is out of its range."""
        header: dict[str, Any] = {}
        if self.limit is not None:
            if not 1 <= self.limit <= LIMIT:
                raise ValueError(f"limit is {self.limit}; it must be from 1 to {LIMIT}")
            header["limit"] = self.limit
        if self.retry is not None:
            header["retry"] = retry_of(self.retry).to_header()
        if self.timeout is not None:
            header["timeout_ms"] = milliseconds("timeout", self.timeout, 1)
        if self.heartbeat is not None:
            header["heartbeat_ms"] = milliseconds("heartbeat", self.heartbeat, 1)
        return header


@dataclass(eq=False)
class Entry:
    """A registered handler. `call` takes the context and returns the result, or a coroutine."""

    kind: str
    is_async: bool
    call: Callable[[Any], Any]
    options: Options
    header: dict[str, Any]
    context_type: type[Context] | type[AsyncContext] = Context
    is_orchestration: bool = False
    running: int = 0
    parked: deque[ContextBase] = field(default_factory=deque)

    def __post_init__(self) -> None:
        if self.is_async:
            self.context_type = AsyncContext


def entry_of(
    kind: str,
    function: Callable[..., Any],
    options: Options,
    *,
    read: Callable[[ContextBase], Any] | None = None,
    write: Callable[[Any], Any] | None = None,
) -> Entry:
    """Returns the entry of a handler.

    `read` makes the first argument, instead of the annotation of the payload. `write` changes the
    result.
    """
    check_name("kind", kind, NAME_BYTES)
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )
    call = _caller(kind, function, read)
    if write is not None:
        call = _writing(call, write, is_async)
    return Entry(kind, is_async, call, options, options.to_header())


def orchestration_entry(code: Code) -> Entry:
    """Returns the entry of an orchestration. Its call runs one turn."""
    check_name("kind", code.kind, NAME_BYTES)

    def call(context: ContextBase) -> TurnEnding | Ending:
        turn = context.task.turn
        if turn is None:
            raise Fail(f"task {context.task_id} of kind `{code.kind}` is no orchestration; start it as one")
        keeps = STICKY in context._runtime.features
        reply = code.turn(turn, context.task.payload, context.task_id, keeps=keeps)
        return Ending("release", {"why": "history"}) if reply is None else TurnEnding(reply.encode())

    return Entry(code.kind, False, call, Options(), {"orchestration": True}, is_orchestration=True)


def _caller(kind: str, function: Callable[..., Any], read: Callable[[ContextBase], Any] | None) -> Callable[[Any], Any]:
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    if len(required) > 2:
        raise TypeError(f"the handler of `{kind}` has {len(required)} parameters; it may have (payload, context)")
    if not parameters:
        return lambda context: function()
    if read is None:
        read = _reader(function, parameters[0])
    if len(parameters) == 1:
        return lambda context: function(read(context))
    return lambda context: function(read(context), context)


def _reader(function: Callable[..., Any], parameter: inspect.Parameter) -> Callable[[ContextBase], Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    hints = typing.get_type_hints(target) if parameter.annotation is not parameter.empty else {}
    decode = _payload.decoder_for(hints.get(parameter.name, Any))

    def read(context: ContextBase) -> Any:
        try:
            return decode(context.task.payload)
        except _payload.PayloadError as error:
            raise Fail(str(error)) from error

    return read


def _writing(call: Callable[[Any], Any], write: Callable[[Any], Any], is_async: bool) -> Callable[[Any], Any]:
    if not is_async:
        return lambda context: write(call(context))

    async def call_async(context: Any) -> Any:
        return write(await call(context))

    return call_async


def wrap(entry: Entry, middleware: Sequence[Middleware]) -> Callable[[Any], Any]:
    """Returns the call of a handler within its middleware; the first one is outermost.

    A turn of an orchestration has none, because it is replayed.
    """
    call = entry.call
    if entry.is_orchestration:
        return call
    for function in reversed(middleware):
        call = functools.partial(_within_async if entry.is_async else _within, function, call)
    return call


def _within(function: Middleware, call: Callable[[Any], Any], context: Any) -> Any:
    around = _begin(function, context)
    try:
        result = call(context)
    except BaseException as error:
        _throw(around, error)
        raise
    return _resume(around, result)


async def _within_async(function: Middleware, call: Callable[[Any], Any], context: Any) -> Any:
    around = _begin(function, context)
    try:
        result = await call(context)
    except BaseException as error:
        _throw(around, error)
        raise
    return _resume(around, result)


def _begin(function: Middleware, context: Any) -> Generator[None, Any, Any]:
    around = function(context)
    if not isinstance(around, Generator):
        raise TypeError(f"the middleware {function!r} is not a generator function; it must `yield` once")
    next(around)
    return around


def _resume(around: Generator[None, Any, Any], result: Any) -> Any:
    try:
        around.send(result)
    except StopIteration:
        return result
    around.close()
    raise RuntimeError("a middleware yielded twice; it must yield once")


def _throw(around: Generator[None, Any, Any], error: BaseException) -> None:
    """Raises the error within the middleware. One that the middleware catches is raised again."""
    try:
        around.throw(error)
    except StopIteration:
        return
    except BaseException as raised:
        if raised is error:
            return
        raise
    around.close()
    raise RuntimeError("a middleware yielded twice; it must yield once")
