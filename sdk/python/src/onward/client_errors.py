"""Errors that a client raises."""

from __future__ import annotations

from onward.errors import OnwardError, Refused

__all__ = ["Conflict", "Denied", "Invalid", "NotFound", "Overloaded", "Problem", "WaitTimeout"]


class Problem(Refused):
    """The server refused a request, or failed in it.

    `code` is stable and for programs; `text` and `remedy` are for people. `status` is that of HTTP,
    `field` the part of the request at fault, `request_id` the number in the log of the server.
    """

    def __init__(
        self,
        code: str,
        text: str,
        remedy: str = "",
        *,
        status: int,
        field: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code, text, remedy)
        self.status = status
        self.field = field
        self.request_id = request_id
        self.retry_after = retry_after


class NotFound(Problem):
    """The task, run, template or path does not exist (404)."""


class Conflict(Problem):
    """The state of the thing does not allow the request (409, 412)."""


class Invalid(Problem):
    """The request breaks a rule (400, 413, 415, 422)."""


class Denied(Problem):
    """The key is missing, not valid, or may not do this (401, 403)."""


class Overloaded(Problem):
    """The server stops, or has too much to do, and did not recover in time (429, 503)."""


class WaitTimeout(OnwardError, TimeoutError):
    """A task has not ended within the time. It goes on; wait for it again by its id, `task`."""

    def __init__(self, task: str, seconds: float) -> None:
        super().__init__(f"task {task} has not ended within {seconds} s; wait for it again, or cancel it")
        self.task = task
