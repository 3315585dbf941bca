"""The client: submits tasks, starts workflows, waits and watches, over the HTTP API of a server."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

from onward import _bodies
from onward._http import PAUSES, Attempts, Lost, Request, Response, Stream, Transport
from onward.client_errors import Conflict, NotFound, Problem, WaitTimeout
from onward.client_types import ENDED, Event, Orchestration, Run, TaskOutcome
from onward.tasks import NewTask, Submitted

__all__ = ["Client", "TaskLike", "Watch"]

TaskLike = str | Submitted
"""A task by its id, or by the result of its submit."""

WAIT = 30.0
"""The longest time for which one request waits, in seconds."""


class Client:
    """A client of `onward serve`, for any number of threads.

    `url` is by default ONWARD_URL, or `http://127.0.0.1:7070`. `key` is by default ONWARD_KEY. Without a
    key, a client of a server on this machine reads the key file that the server keeps beside its store
    (`key_file`, by default that of ONWARD_STORE or `onward.db`).

    A request that gets no response, or is refused for lack of room, is sent again for `retry_for` seconds.
    Submits and starts carry an idempotency key, so that a repeat has no second effect. `timeout` is the
    longest time for the response to one attempt, in seconds, without the time that the server waits.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        key_file: str | None = None,
        timeout: float = 30.0,
        retry_for: float = 30.0,
    ) -> None:
        if timeout <= 0 or retry_for < 0:
            raise ValueError(f"timeout is {timeout} s and retry_for {retry_for} s; they must be positive")
        self._http = Transport(url, key, key_file=key_file, timeout=timeout, retry_for=retry_for)

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._http.url

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. Requests and watches of other threads end with Unavailable."""
        self._http.close()

    def submit(
        self, kind: str | NewTask, payload: Any = None, *, idempotency_key: str | None = None, **options: Any
    ) -> Submitted:
        """Submits a task, which is durable when the call returns.

        `options` are those of NewTask, such as `queue`, `priority`, `key` and `retry`. State an
        `idempotency_key` if the program may repeat the call after it was restarted.

        Raises Problem, Unavailable, ValueError for an option out of its range, and PayloadError.
        """
        body = _bodies.task_body(_new_task(kind, payload, options))
        return _bodies.submitted_of(self._create("/v1/tasks", body, idempotency_key).json())

    def submit_many(self, tasks: Iterable[NewTask], *, idempotency_key: str | None = None) -> list[Submitted]:
        """Submits up to 10 000 tasks in one commit, all or none. Returns their results in order."""
        body = {"tasks": [_bodies.task_body(task) for task in tasks]}
        reply = self._create("/v1/tasks:batch", body, idempotency_key).json()
        return [_bodies.submitted_of(one) for one in reply["tasks"]]

    def submit_and_wait(
        self,
        kind: str | NewTask,
        payload: Any = None,
        *,
        within: float | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> TaskOutcome:
        """Submits a task and waits for its end, in one request if the task ends soon.

        Raises WaitTimeout if the task has not ended `within` so many seconds.
        """
        until = _until(within)
        body = _bodies.task_body(_new_task(kind, payload, options))
        reply = self._create("/v1/tasks", body, idempotency_key, wait=_left(until)).json()
        if reply.get("state") in ENDED:
            return self._outcome(reply)
        return self._wait(reply["id"], until, within)

    def wait(self, task: TaskLike, within: float | None = None) -> TaskOutcome:
        """Waits for the end of a task, run or orchestration, without polling. The end may be a failure.

        Raises WaitTimeout if it has not ended `within` so many seconds.
        """
        return self._wait(_id(task), _until(within), within)

    def _wait(self, task: str, until: float | None, within: float | None) -> TaskOutcome:
        pause = PAUSES[0]
        while True:
            asked, wait = time.monotonic(), _left(until)
            record = self._get(f"/v1/tasks/{_path(task)}", wait=wait)
            if record["state"] in ENDED:
                return self._outcome(record)
            now = time.monotonic()
            if until is not None and now >= until:
                raise WaitTimeout(task, within or 0.0)
            # A server that stops, or one behind a proxy, may respond before the time.
            if now - asked < wait / 2:
                self._http.closed.wait(pause if until is None else min(pause, until - now))
                pause = min(2 * pause, PAUSES[1])

    def result(self, task: TaskLike) -> TaskOutcome:
        """Returns the state of a task now, and its result if it is completed."""
        return self._outcome(self._get(f"/v1/tasks/{_path(_id(task))}"))

    def _outcome(self, record: dict[str, Any]) -> TaskOutcome:
        payload = None
        if record["state"] == "completed":
            # The task has the result as JSON, in which long numbers lose digits. This is as it is.
            payload = self._http.send(Request("GET", f"/v1/tasks/{_path(record['id'])}/result")).body
        return TaskOutcome(record["id"], record["state"], payload, record.get("error"))

    def cancel(self, task: TaskLike) -> str:
        """Cancels a task, run or orchestration.

        Returns `ended`, or `requested` if it runs and was asked to stop. Raises Conflict if it has
        ended in another way.
        """
        path = f"/v1/tasks/{_path(_id(task))}"
        try:
            return str(self._post(f"{path}/cancel", {}).json()["effect"])
        except Conflict:
            # An earlier attempt of this request may have cancelled it.
            if self._get(path)["state"] == "cancelled":
                return "ended"
            raise

    def signal(self, task: TaskLike, name: str, payload: Any = None) -> None:
        """Sends a signal to a step that waits in a run, or to an orchestration.

        Raises Unavailable if the connection is lost before the response: a second signal might count.
        """
        for what in ("runs", "orchestrations"):
            try:
                path = f"/v1/{what}/{_path(_id(task))}/signals/{_path(name)}"
                self._post(path, payload, is_repeatable=False)
                return
            except NotFound:
                if what == "orchestrations":
                    raise

    def start(
        self,
        workflow: str,
        payload: Any = None,
        *,
        version: str | None = None,
        environment: str | None = None,
        key: str | None = None,
        idempotency_key: str | None = None,
    ) -> Submitted:
        """Starts a run of a stored workflow with an input. `version` is the label of one that is not the newest.

        `key` makes the run unique if the template has no key of its own.
        """
        fields = {"input": payload, "environment": environment, "key": key}
        body = {name: value for name, value in fields.items() if value is not None}
        name = workflow if version is None else f"{workflow}@{version}"
        return _bodies.submitted_of(self._create(f"/v1/templates/{_path(name)}/runs", body, idempotency_key).json())

    def start_orchestration(
        self, kind: str, payload: Any = None, *, key: str | None = None, idempotency_key: str | None = None
    ) -> Submitted:
        """Starts an orchestration. `key` makes it unique among the active ones of its kind."""
        body = {"kind": kind, "payload": payload} | ({} if key is None else {"key": key})
        return _bodies.submitted_of(self._create("/v1/orchestrations", body, idempotency_key).json())

    def run(self, task: TaskLike) -> Run:
        """Returns a run of a workflow and its steps."""
        return _bodies.run_of(self._get(f"/v1/runs/{_path(_id(task))}"))

    def query(self, task: TaskLike) -> Orchestration:
        """Returns what an orchestration awaits, and the status and values that it published."""
        return _bodies.orchestration_of(self._get(f"/v1/orchestrations/{_path(_id(task))}"))

    def watch(
        self,
        task: TaskLike | None = None,
        *,
        kinds: Iterable[str] = (),
        queue: str | None = None,
        ends: bool = False,
        after: str | None = None,
    ) -> Watch:
        """Returns the events of one task or of all, as they come; close it, or use it by `with`.

        It begins at the oldest event that is kept, or behind the cursor `after`. After a cut it
        continues behind the last event. `kinds`, `queue` and `ends` (ends of tasks only) select
        events, and cannot be used with `task`.
        """
        selection = {"kinds": ",".join(kinds), "queue": queue or "", "ends": "true" if ends else ""}
        query = urlencode({name: value for name, value in selection.items() if value})
        if task is not None and query:
            raise ValueError("kinds, queue and ends select among all tasks; leave them out with `task`")
        path = "/v1/events" if task is None else f"/v1/tasks/{_path(_id(task))}/events"
        return Watch(self._http, path + (f"?{query}" if query else ""), after)

    def _get(self, path: str, wait: float = 0.0) -> dict[str, Any]:
        headers = {"Prefer": _prefer(wait)} if wait > 0 else {}
        body: dict[str, Any] = self._http.send(Request("GET", path, headers=headers, wait=wait)).json()
        return body

    def _post(self, path: str, body: Any, *, is_repeatable: bool = True) -> Response:
        headers = {"Content-Type": "application/json"}
        return self._http.send(Request("POST", path, _json(body), headers, is_repeatable))

    def _create(self, path: str, body: Any, key: str | None, wait: float = 0.0) -> Response:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key or uuid.uuid4().hex}
        if wait > 0:
            headers["Prefer"] = _prefer(wait)
        return self._http.send(Request("POST", path, _json(body), headers, wait=wait))


class Watch:
    """An endless iterator of events. `cursor` is the position behind the last one."""

    def __init__(self, transport: Transport, path: str, after: str | None) -> None:
        self.cursor = after
        self._http = transport
        self._path = path
        self._attempts = Attempts(transport.retry_for, transport.closed)
        self._stream: Stream | None = None
        self._messages: Iterator[dict[str, str]] = iter(())
        self._is_closed = False
        self._lock = threading.Lock()
        """Held by the thread that waits for an event, and closes the stream in the end."""

    def __iter__(self) -> Watch:
        return self

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __next__(self) -> Event:
        """Waits for the next event. Ends when it is closed.

        Raises Unavailable if the server is gone for longer than `retry_for`, and Problem.
        """
        with self._lock:
            while not self._is_closed:
                try:
                    event = self._next_event()
                except Lost as lost:
                    self._end_stream()
                    if not self._is_closed:
                        self._attempts.pause(self._http.unavailable(lost))
                except Problem as problem:
                    if problem.status not in (429, 502, 503, 504):
                        raise
                    self._attempts.pause(problem, problem.retry_after)
                else:
                    self._attempts.progressed()
                    self.cursor = event.cursor
                    return event
            self._end_stream()
            raise StopIteration

    def _next_event(self) -> Event:
        if self._stream is None:
            self._stream = self._http.open_stream(self._path, self.cursor)
            self._messages = iter(self._stream)
            self._attempts.succeeded()
            if self._is_closed:  # while the stream was opened
                raise Lost(ConnectionError("the watch is closed"), sent=True)
        for message in self._messages:
            if message.get("event") == "bye":
                break
            if event := _event(message):
                return event
        raise Lost(ConnectionError("the stream was cut"), sent=True)

    def _end_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def close(self) -> None:
        """Ends the watch; another thread may call it while this one waits."""
        self._is_closed = True
        stream = self._stream
        if stream is not None:
            stream.shut()
        if self._lock.acquire(blocking=False):
            self._end_stream()
            self._lock.release()


def _event(message: dict[str, str]) -> Event | None:
    if message.get("event") == "gap":
        return Event(cursor=message["id"], change="gap")
    return _bodies.event_of(json.loads(message["data"])) if "data" in message else None


def _new_task(kind: str | NewTask, payload: Any, options: dict[str, Any]) -> NewTask:
    if isinstance(kind, str):
        return NewTask(kind, payload, **options)
    if payload is not None or options:
        raise TypeError("a NewTask has its payload and options itself")
    return kind


def _json(body: Any) -> bytes:
    return _bodies.encode(body)


def _id(task: TaskLike) -> str:
    return task if isinstance(task, str) else task.task


def _path(text: str) -> str:
    return quote(text, safe="@")


def _until(within: float | None) -> float | None:
    return None if within is None else time.monotonic() + within


def _left(until: float | None) -> float:
    return WAIT if until is None else max(0.0, min(WAIT, until - time.monotonic()))


def _prefer(wait: float) -> str:
    return f"wait={max(1, round(wait * 1000))}ms"
