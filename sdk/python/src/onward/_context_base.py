"""The part of a context that is the same for sync and async handlers."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from onward import _payload
from onward._ends import children_ending, cut, later_ending, move_ending, release_ending
from onward._frames import PAYLOADS, Header
from onward._messages import Reply, TaskMessage
from onward._requests import encode_tasks, new_task
from onward.errors import Cancelled, Refused
from onward.results import Step
from onward.tasks import NewTask, check_name

log = logging.getLogger("onward")

PROGRESS_MESSAGE_BYTES = 1_024


class Runtime(Protocol):
    """The part of a worker that a context uses. The test harness has another one."""

    max_payload: int
    features: frozenset[str]
    state: Any

    def touch(self, context: ContextBase) -> None:
        """Sends the context's heartbeat and progress soon."""

    def save_checkpoint(self, context: ContextBase, payload: bytes) -> Future[None]:
        """Keeps a checkpoint; the future ends when it is durable."""
        ...

    def request(self, header: Header, payloads: list[bytes], *, resend: bool) -> Future[Reply]:
        """Sends a request; the future ends with its reply."""
        ...

    def check_process(self) -> None:
        """Raises ForkError in a process that was forked from the worker's."""


class ContextBase:
    """The part of a context that is the same for sync and async handlers."""

    # Most attempts use few of these. So they are attributes of the class until they are set.
    _stop: str | None = None
    _callbacks: list[Callable[[], object]] | None = None
    _abort: Callable[[], object] | None = None
    _spawned: list[NewTask] | None = None
    _deadline: float | None = None
    _values: dict[str, Any] | None = None
    progress_fields: dict[str, Any] | None = None

    def __init__(self, task: TaskMessage, runtime: Runtime, entry: Any = None) -> None:
        self.task = task
        """The task as the gateway sent it."""
        self._runtime = runtime
        self._entry = entry
        self._saved = task.checkpoint
        deadline = task.options.deadline
        if deadline is not None:
            self._deadline = time.monotonic() + deadline

    # The task and its attempt.

    @property
    def task_id(self) -> str:
        """The id of the task; never used twice, so it is a good idempotency key."""
        return self.task.task

    @property
    def kind(self) -> str:
        """The kind of the task."""
        return self.task.kind

    @property
    def queue(self) -> str:
        """The queue of the task."""
        return self.task.options.queue

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self.task.attempt

    @property
    def token(self) -> str:
        """The token by which another program completes the task after `later`."""
        return f"{self.task.task}.{self.task.fence}"

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that the submitter gave the task."""
        return self.task.options.headers

    @property
    def trace(self) -> Mapping[str, str]:
        """`traceparent` and `tracestate` of the submitter, if it had them."""
        return self.task.options.trace

    @property
    def priority(self) -> int:
        """The priority of the task, from 0 to 255; higher is sooner."""
        return self.task.options.priority

    @property
    def group(self) -> str | None:
        """The group with whose tasks this one shares limits."""
        return self.task.options.group

    @property
    def key(self) -> str | None:
        """The key that makes the task unique."""
        return self.task.options.key

    @property
    def parent(self) -> str | None:
        """The id of the task whose child this one is."""
        return self.task.options.parent

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags of the task."""
        return self.task.options.tags

    @property
    def scheduled_at(self) -> str | None:
        """The time for which a schedule submitted the task, as RFC 3339."""
        return self.task.options.scheduled_at

    @property
    def item_count(self) -> int:
        """The number of aggregated tasks of which this one is the batch; 0 if it is none."""
        return self.task.options.items

    @property
    def heartbeat_limit(self) -> float | None:
        """The longest time in seconds between two calls of `heartbeat` or `progress`."""
        return self.task.options.heartbeat

    @property
    def remaining(self) -> float | None:
        """The seconds until the attempt is stopped, or None without a time limit."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def state(self) -> Any:
        """The `state` of the worker, which every handler shares."""
        return self._runtime.state

    @property
    def local(self) -> dict[str, Any]:
        """Values that middleware hands to the handler; one dictionary for each attempt."""
        if self._values is None:
            self._values = {}
        return self._values

    @property
    def step(self) -> Step:
        """The payload as that of a workflow's step."""
        return Step(_payload.decode_json(self.task.payload))

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose records carry `task`, `kind` and `attempt`."""
        extra = {"task": self.task.task, "kind": self.task.kind, "attempt": self.task.attempt}
        return logging.LoggerAdapter(logging.getLogger(f"onward.{self.task.kind}"), extra)

    # Cancellation.

    @property
    def cancelled(self) -> bool:
        """True if the attempt should stop."""
        return self._stop is not None

    @property
    def why(self) -> str | None:
        """The reason to stop: `cancelled`, `lost`, `preempted`, `timeout`, `stopping`, or None."""
        return self._stop

    def check(self) -> None:
        """Raises Cancelled if the attempt should stop."""
        if self._stop is not None:
            raise Cancelled(self._stop)

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Calls `callback` once when the attempt should stop, on a thread of the worker.

        It must return soon: set an event, close a socket, kill a process. If the attempt should
        stop already, it is called at once.
        """
        callbacks = self._callbacks
        if callbacks is None:
            callbacks = self._callbacks = []
        callbacks.append(callback)
        if self._stop is not None:
            self._run_callbacks()

    def request_stop(self, why: str) -> None:
        """Asks the attempt to stop. Called by the worker; a later reason replaces only with `lost`."""
        if self._stop is None or why == "lost":
            self._stop = why
        self._run_callbacks()

    def _run_callbacks(self) -> None:
        callbacks = self._callbacks
        while callbacks:
            try:
                callback = callbacks.pop()
            except IndexError:  # another thread took the last one
                return
            try:
                callback()
            except Exception:
                log.exception("a callback of task %s failed", self.task_id)

    def _forget_callback(self, callback: Callable[[], object]) -> None:
        with contextlib.suppress(ValueError):
            if self._callbacks:
                self._callbacks.remove(callback)

    # Progress.

    def progress(
        self,
        fraction: float | None = None,
        message: str | None = None,
        *,
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        """Reports progress: a fraction from 0 to 1, a message, bytes done and in all.

        It never blocks and may be called often; the newest values are sent about ten times a second.
        It counts as a heartbeat.
        """
        if fraction is not None and not 0 <= fraction <= 1:
            raise ValueError(f"fraction is {fraction}; it must be from 0 to 1")
        fields: dict[str, Any] = {} if self.progress_fields is None else dict(self.progress_fields)
        if fraction is not None:
            fields["fraction"] = fraction
        if message is not None:
            fields["message"] = cut(message, PROGRESS_MESSAGE_BYTES)
        if done is not None:
            fields["done"] = done
        if total is not None:
            fields["total"] = total
        self.progress_fields = fields
        self._runtime.touch(self)

    def heartbeat(self) -> None:
        """Says that the handler still works, for a task with a heartbeat limit."""
        self._runtime.touch(self)

    # Checkpoints and ends.

    def last_checkpoint(self, kind: Any = None) -> Any:
        """Returns the checkpoint of an earlier attempt or of `await_children`; None without one."""
        return None if self._saved is None else _payload.decoder_for(kind)(self._saved)

    @property
    def is_resumed(self) -> bool:
        """True if there is a checkpoint."""
        return self._saved is not None

    def spawn(self, task: str | NewTask, payload: Any = None, **options: Any) -> None:
        """Submits a child with the end of this attempt, in one commit; a failed attempt submits none.

        `options` are the fields of NewTask.

        Raises ValueError beyond 1 024 tasks.
        """
        if self._spawned is None:
            self._spawned = []
        if len(self._spawned) >= PAYLOADS:
            raise ValueError(f"an attempt spawns at most {PAYLOADS} tasks; submit more with `submit`")
        child = new_task(task, payload, options)
        if child.headers:
            self._need("headers")
        self._spawned.append(child)

    def later(self, *, within: float | None = None) -> Any:
        """Returns the value by which a handler ends without a result: `return ctx.later(within=60)`.

        The task waits until another program completes it by `ctx.token`, for at most `within`
        seconds.
        """
        return later_ending(within)

    def await_children(self, checkpoint: Any = None, *, fail_fast: bool = False) -> Any:
        """Returns the value by which a handler waits for its children: `return ctx.await_children(…)`.

        The handler runs again when they have ended, and finds `checkpoint` in `last_checkpoint`.
        With `fail_fast` the first child that does not complete fails the task.
        """
        return children_ending(_payload.encode(checkpoint), fail_fast)

    def move(self, queue: str) -> Any:
        """Returns the value by which the task continues in another queue: `return ctx.move("slow")`."""
        return move_ending(check_name("queue", queue))

    def release(self) -> Any:
        """Returns the value by which a handler gives the task back, and the attempt is not counted."""
        return release_ending()

    # Requests, which both kinds of context wait for in their own way.

    def _checkpoint(self, value: Any) -> Future[None]:
        self._runtime.check_process()
        payload = _payload.encode(value)
        if len(payload) > self._runtime.max_payload:
            raise ValueError(
                f"the checkpoint of task {self.task_id} has {len(payload)} bytes, more than"
                f" {self._runtime.max_payload}; store the data elsewhere and keep a reference"
            )
        return self._runtime.save_checkpoint(self, payload)

    def _submit(self, tasks: Sequence[NewTask], child: bool) -> Future[Reply]:
        self._need("submit")
        if not 1 <= len(tasks) <= PAYLOADS:
            raise ValueError(f"{len(tasks)} tasks; a submit has 1 to {PAYLOADS}")
        entries, payloads = encode_tasks(
            tasks, self._runtime.features, self._runtime.max_payload, self.task.options.trace
        )
        header: Header = {"t": "submit", "tasks": entries}
        if child:
            header["parent"] = {"task": self.task.task, "fence": self.task.fence}
        return self._runtime.request(header, payloads, resend=all(task.key for task in tasks))

    def _ask(self, what: str, fields: Mapping[str, Any]) -> Future[Reply]:
        self._need("ask")
        header: Header = {"t": "ask", "what": what, **fields}
        return self._runtime.request(header, [], resend=True)

    def _need(self, feature: str) -> None:
        self._runtime.check_process()
        if feature not in self._runtime.features:
            raise Refused("unsupported", f"the gateway has no feature `{feature}`", "upgrade the gateway")
