"""New tasks: what a handler submits, and the options of a kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onward import _payload
from onward._messages import NAME_BYTES

__all__ = ["NewTask", "Retry", "RetryLike", "Submitted"]

KEY_BYTES = 512
TAGS = 32

Backoff = Literal["constant", "linear", "exponential", "jitter"]


@dataclass(frozen=True)
class Retry:
    """A retry policy: the number of attempts, and the delay between them in seconds.

    `attempts` counts the first one. `jitter` waits a random time up to that of `exponential`.
    `increment` is that of `linear`, and `initial` by default.
    """

    attempts: int = 5
    backoff: Backoff = "jitter"
    initial: float = 1.0
    factor: float = 2.0
    increment: float | None = None
    maximum: float = 600.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}; it counts the first one, so it is at least 1")
        if self.backoff not in ("constant", "linear", "exponential", "jitter"):
            raise ValueError(f"backoff is {self.backoff!r}; use constant, linear, exponential or jitter")
        if self.factor < 1:
            raise ValueError(f"factor is {self.factor}; it must be at least 1")

    def to_header(self) -> dict[str, Any]:
        """Returns the policy as the protocol writes it."""
        header: dict[str, Any] = {"attempts": self.attempts, "backoff": self.backoff}
        header["initial_ms"] = milliseconds("initial", self.initial, 0)
        if self.backoff in ("exponential", "jitter"):
            header["factor"] = self.factor
        if self.backoff == "linear":
            step = self.initial if self.increment is None else self.increment
            header["increment_ms"] = milliseconds("increment", step, 0)
        if self.backoff != "constant":
            header["maximum_ms"] = milliseconds("maximum", self.maximum, 0)
        return header


RetryLike = int | Mapping[str, Any] | Retry
"""A retry policy, its fields, or the number of attempts."""


def retry_of(value: RetryLike) -> Retry:
    """Returns a retry policy from any of its forms."""
    if isinstance(value, Retry):
        return value
    return Retry(attempts=value) if isinstance(value, int) else Retry(**value)


def milliseconds(name: str, seconds: float, least: int) -> int:
    """Returns a time in milliseconds, checked against the least one."""
    value = round(seconds * 1000)
    if value < least:
        raise ValueError(f"{name} is {seconds} s; it must be at least {least} ms")
    return value


def check_name(name: str, value: str, longest: int = NAME_BYTES) -> str:
    """Returns a name if its length is within the bound."""
    size = len(value.encode())
    if not 1 <= size <= longest:
        raise ValueError(f"{name} has {size} bytes; it must have 1 to {longest}")
    return value


@dataclass(frozen=True)
class NewTask:
    """A task to submit. Times are in seconds.

    `payload` is bytes, or anything that can be written as JSON. `key` makes the task unique among
    the active tasks of its kind; `keep_key` keeps it taken for a time after the end. A higher
    `priority`, from 0 to 255, runs sooner. `headers` needs a gateway with the feature `headers`.
    """

    kind: str
    payload: Any = None
    queue: str = "default"
    priority: int = 128
    key: str | None = None
    keep_key: float = 0.0
    on_duplicate: Literal["skip", "supersede", "reject", "requeue"] = "skip"
    delay: float = 0.0
    ttl: float | None = None
    timeout: float | None = None
    heartbeat: float | None = None
    retry: RetryLike | None = None
    group: str | None = None
    affinity: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def to_header(self) -> dict[str, Any]:
        """Returns the task as the protocol writes it, without its payload.

        Raises ValueError if a field is out of its range.
        """
        header: dict[str, Any] = {"kind": check_name("kind", self.kind)}
        if self.queue != "default":
            header["queue"] = check_name("queue", self.queue)
        if not 0 <= self.priority <= 255:
            raise ValueError(f"priority is {self.priority}; it must be 0 to 255")
        if self.priority != 128:
            header["priority"] = self.priority
        if self.key is not None:
            header["key"] = check_name("key", self.key, KEY_BYTES)
            header["on_duplicate"] = self.on_duplicate
            header["keep_key_ms"] = milliseconds("keep_key", self.keep_key, 0)
        for name in ("group", "affinity"):
            value = getattr(self, name)
            if value is not None:
                header[name] = check_name(name, value)
        if self.delay:
            header["delay_ms"] = milliseconds("delay", self.delay, 0)
        for name in ("ttl", "timeout", "heartbeat"):
            value = getattr(self, name)
            if value is not None:
                header[f"{name}_ms"] = milliseconds(name, value, 1)
        if self.retry is not None:
            header["retry"] = retry_of(self.retry).to_header()
        if len(self.tags) > TAGS:
            raise ValueError(f"a task has {len(self.tags)} tags; it may have {TAGS}")
        if self.tags:
            header["tags"] = dict(self.tags)
        if self.headers:
            header["headers"] = dict(self.headers)
        return header

    def encoded_payload(self) -> bytes:
        """Returns the payload in bytes; no payload is empty."""
        return b"" if self.payload is None else _payload.encode(self.payload)


@dataclass(frozen=True)
class Submitted:
    """The result of a submit.

    `result` is `inserted`, `duplicate`, `priority_raised`, `requeued`, `superseded` or `rejected`.
    `task` is the id of the new task, or of the existing one.
    """

    task: str
    result: str

    @property
    def is_new(self) -> bool:
        """True if a task was inserted."""
        return self.result in ("inserted", "superseded")
