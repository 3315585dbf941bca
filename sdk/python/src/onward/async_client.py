"""The client for programs with an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from onward.client import Client, TaskLike
from onward.client_types import Event, Orchestration, Run, TaskOutcome
from onward.tasks import NewTask, Submitted

__all__ = ["AsyncClient"]

P = ParamSpec("P")
T = TypeVar("T")


class AsyncClient:
    """A client whose methods are awaited. The arguments are those of Client, and mean the same.

    Requests run on threads of its own, `connections` at most at once; each wait and each watch takes
    one. When an `await` is cancelled, its request ends in the background.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        key_file: str | None = None,
        timeout: float = 30.0,
        retry_for: float = 30.0,
        connections: int = 64,
    ) -> None:
        self._client = Client(url, key, key_file=key_file, timeout=timeout, retry_for=retry_for)
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="onward-client")

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._client.url

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections. Requests that are under way end with Unavailable."""
        self._client.close()
        await asyncio.to_thread(self._threads.shutdown)

    async def _call(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(function, *arguments, **options))

    async def submit(
        self, kind: str | NewTask, payload: Any = None, *, idempotency_key: str | None = None, **options: Any
    ) -> Submitted:
        """Submits a task, as Client.submit does."""
        return await self._call(self._client.submit, kind, payload, idempotency_key=idempotency_key, **options)

    async def submit_many(self, tasks: Iterable[NewTask], *, idempotency_key: str | None = None) -> list[Submitted]:
        """Submits several tasks in one commit, as Client.submit_many does."""
        return await self._call(self._client.submit_many, list(tasks), idempotency_key=idempotency_key)

    async def submit_and_wait(
        self,
        kind: str | NewTask,
        payload: Any = None,
        *,
        within: float | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> TaskOutcome:
        """Submits a task and waits for its end, as Client.submit_and_wait does."""
        submit = self._client.submit_and_wait
        return await self._call(submit, kind, payload, within=within, idempotency_key=idempotency_key, **options)

    async def wait(self, task: TaskLike, within: float | None = None) -> TaskOutcome:
        """Waits for the end of a task, as Client.wait does."""
        return await self._call(self._client.wait, task, within)

    async def result(self, task: TaskLike) -> TaskOutcome:
        """Returns the state of a task, as Client.result does."""
        return await self._call(self._client.result, task)

    async def cancel(self, task: TaskLike) -> str:
        """Cancels a task, as Client.cancel does."""
        return await self._call(self._client.cancel, task)

    async def signal(self, task: TaskLike, name: str, payload: Any = None) -> None:
        """Sends a signal, as Client.signal does."""
        await self._call(self._client.signal, task, name, payload)

    async def start(
        self,
        workflow: str,
        payload: Any = None,
        *,
        version: str | None = None,
        environment: str | None = None,
        key: str | None = None,
        idempotency_key: str | None = None,
    ) -> Submitted:
        """Starts a run of a workflow, as Client.start does."""
        options = {"version": version, "environment": environment, "key": key, "idempotency_key": idempotency_key}
        return await self._call(partial(self._client.start, workflow, payload, **options))

    async def start_orchestration(
        self, kind: str, payload: Any = None, *, key: str | None = None, idempotency_key: str | None = None
    ) -> Submitted:
        """Starts an orchestration, as Client.start_orchestration does."""
        start = self._client.start_orchestration
        return await self._call(start, kind, payload, key=key, idempotency_key=idempotency_key)

    async def run(self, task: TaskLike) -> Run:
        """Returns a run of a workflow, as Client.run does."""
        return await self._call(self._client.run, task)

    async def query(self, task: TaskLike) -> Orchestration:
        """Returns what an orchestration published, as Client.query does."""
        return await self._call(self._client.query, task)

    async def watch(
        self,
        task: TaskLike | None = None,
        *,
        kinds: Iterable[str] = (),
        queue: str | None = None,
        ends: bool = False,
        after: str | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Yields events as they come, as Client.watch does. Use `contextlib.aclosing` to end it early."""
        watch = self._client.watch(task, kinds=kinds, queue=queue, ends=ends, after=after)
        try:
            while (event := await self._call(next, watch, None)) is not None:
                yield event
        finally:
            watch.close()
