"""Errors that handlers raise and that Onward raises."""

from __future__ import annotations

from typing import Any

__all__ = [
    "Cancelled",
    "Fail",
    "ForkError",
    "Nondeterminism",
    "NotDeterministic",
    "OnwardError",
    "Refused",
    "RetryLater",
    "TaskFailed",
    "Unavailable",
]


class OnwardError(Exception):
    """The base of all errors of this package."""


class Fail(OnwardError):
    """Ends the task as failed: no further attempt is made.

    `details` is any JSON value of at most 4 096 bytes, for programs that read the failure.
    """

    def __init__(self, message: str = "", *, details: Any = None) -> None:
        super().__init__(message)
        self.details = details


class RetryLater(OnwardError):
    """Ends the attempt; the task is tried again after `after` seconds instead of its policy's delay.

    With `counts=False` the attempt is not counted: use it if something that the task needs is busy.
    """

    def __init__(self, message: str = "", *, after: float, counts: bool = True, details: Any = None) -> None:
        if after < 0:
            raise ValueError(f"after is {after}; it must be at least 0 seconds")
        super().__init__(message)
        self.after = after
        self.counts = counts
        self.details = details


class Cancelled(OnwardError):
    """The attempt should stop. Let it pass through the handler after its cleanup.

    `why` is `cancelled`, `lost`, `preempted`, `timeout` or `stopping`.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"the attempt was asked to stop: {why}")
        self.why = why


class Refused(OnwardError):
    """The gateway or the store rejects a request. `code` is the protocol's, `remedy` says what to do."""

    def __init__(self, code: str, text: str, remedy: str = "") -> None:
        super().__init__(f"{code}: {text}" + (f"; {remedy}" if remedy else ""))
        self.code = code
        self.text = text
        self.remedy = remedy


class Unavailable(OnwardError):
    """The connection was lost before the reply, so that it is unknown whether the request took effect.

    A submit whose tasks all have keys is sent again by itself and does not raise this.
    """


class ForkError(OnwardError):
    """A process that was forked from a running worker uses the worker, whose threads it does not have."""


class TaskFailed(OnwardError):
    """A task ended without being completed.

    `state` is `failed`, `dead`, `cancelled`, `expired`, or in an orchestration `not_started`; `error` is the last
    error of the task. A client sets `task`, the id; an orchestration sets `kind`.
    """

    def __init__(self, state: str, error: str | None, *, task: str | None = None, kind: str | None = None) -> None:
        name = f"task {task}" if kind is None else f"the task `{kind}`"
        super().__init__(f"{name} ended as {state}" + (f": {error}" if error else ""))
        self.task = task
        self.kind = kind
        self.state = state
        self.error = error


class NotDeterministic(OnwardError):
    """The code of an orchestration does what a replay would do again: it sleeps, connects, starts a thread.

    The orchestration becomes a dead letter and its messages are kept: correct the code, then retry it.
    """


class Nondeterminism(OnwardError):
    """The code of an orchestration differs from its history, at `position`.

    `expected` is what the history has there, `found` what the code does; both are texts, or None.
    """

    def __init__(self, position: int, expected: str | None, found: str | None, cause: str) -> None:
        has = f"the history has {expected}" if expected else "the history ends"
        does = f"the code has {found}" if found else "the code has nothing of the kind"
        super().__init__(
            f"the code does not match its history: at event {position} {has}, and {does}; {cause};"
            " bring back the code that began it, then retry the orchestration"
        )
        self.position = position
        self.expected = expected
        self.found = found
