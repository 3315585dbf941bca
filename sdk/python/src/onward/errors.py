"""Errors that handlers raise and that Onward raises."""

from __future__ import annotations

from typing import Any

__all__ = ["Cancelled", "Fail", "ForkError", "OnwardError", "Refused", "RetryLater", "Unavailable"]


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
