"""Ends of attempts: from what a handler returns or raises to an entry of an `end` message."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onward import _payload
from onward._frames import HEADER_BYTES, MESSAGE_BYTES, PAYLOADS
from onward._messages import TaskMessage
from onward.errors import Cancelled, Fail, RetryLater
from onward.tasks import NewTask, milliseconds

TEXT_BYTES = 8_192
CLASS_BYTES = 128
DETAILS_BYTES = 4_096
TRACEBACK_CHARACTERS = 2_000

SPAWN_MARGIN = 4_096
"""The part of a header that is kept free beside spawned tasks, for progress and the frame of the list."""

Reference = tuple[dict[str, Any], str, bytes]
"""A field that gets the index of a payload when the message is built."""


@dataclass(slots=True)
class End:
    """One entry of an `end` message, with the payloads to which its fields point."""

    entry: dict[str, Any]
    references: list[Reference] = field(default_factory=list)


@dataclass(frozen=True)
class Ending:
    """Another end of an attempt than a result, returned by a handler."""

    outcome: str
    fields: dict[str, Any]
    checkpoint: bytes | None = None


@dataclass(frozen=True)
class TurnEnding:
    """The end of an orchestration's turn: its decisions as JSON."""

    reply: bytes


def later_ending(within: float | None) -> Ending:
    """Returns the end that waits for external completion."""
    fields = {} if within is None else {"within_ms": milliseconds("within", within, 1)}
    return Ending("later", fields)


def children_ending(checkpoint: bytes, fail_fast: bool) -> Ending:
    """Returns the end that waits for children."""
    return Ending("children", {"on_failure": "fail" if fail_fast else "ignore"}, checkpoint)


def move_ending(queue: str) -> Ending:
    """Returns the end that continues in another queue."""
    return Ending("move", {"queue": queue})


def release_ending() -> Ending:
    """Returns the end that gives the task back."""
    return Ending("release", {"why": "given_up"})


def cut(text: str, longest: int) -> str:
    """Returns a text cut to a number of bytes of UTF-8, at a character."""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= longest else data[: longest - 3].decode("utf-8", "ignore") + "…"


def entry_of(task: TaskMessage, outcome: str) -> dict[str, Any]:
    """Returns the fields that every end has."""
    return {"task": task.task, "fence": task.fence, "outcome": outcome}


def release(task: TaskMessage, why: str) -> End:
    """Returns the end of a task that was not started, or is given up."""
    return End({**entry_of(task, "release"), "why": why})


def completed(task: TaskMessage, value: Any, max_payload: int) -> End:
    """Returns the end of an attempt with a result.

    A result that cannot be written as JSON or is too large becomes a failure without a retry.
    """
    entry = {"task": task.task, "fence": task.fence, "outcome": "ok"}
    try:
        payload = _payload.encode(value)
    except _payload.PayloadError as error:
        return failed(task, error, retry=False)
    if len(payload) > max_payload:
        return _too_large(task, "result", len(payload), max_payload)
    return End(entry, [(entry, "payload", payload)])


def _too_large(task: TaskMessage, name: str, size: int, bound: int) -> End:
    text = (
        f"the {name} of task {task.task} has {size} bytes, more than {bound};"
        " store the data elsewhere and return a reference"
    )
    entry = {**entry_of(task, "fail"), "class": "PayloadTooLarge", "message": text, "retry": False}
    return End(entry)


def ended_otherwise(task: TaskMessage, ending: Ending, max_payload: int) -> End:
    """Returns the end that a handler chose instead of a result."""
    end = End({**entry_of(task, ending.outcome), **ending.fields})
    if ending.checkpoint is not None:
        if len(ending.checkpoint) > max_payload:
            return _too_large(task, "checkpoint", len(ending.checkpoint), max_payload)
        end.references.append((end.entry, "checkpoint", ending.checkpoint))
    return end


def turn_ended(task: TaskMessage, ending: TurnEnding, max_payload: int) -> End:
    """Returns the end of a turn with its decisions."""
    if len(ending.reply) > max_payload:
        return _too_large(task, "decisions of a turn", len(ending.reply), max_payload)
    entry = entry_of(task, "turn")
    return End(entry, [(entry, "payload", ending.reply)])


def failed(task: TaskMessage, error: BaseException, *, retry: bool | None = None) -> End:
    """Returns the end of an attempt that raised an error."""
    entry = entry_of(task, "fail")
    entry["class"] = cut(_class_name(error), CLASS_BYTES)
    entry["message"] = cut(str(error) or type(error).__name__, TEXT_BYTES)
    if isinstance(error, Fail):
        entry["retry"] = False
    elif isinstance(error, RetryLater):
        entry["retry_after_ms"] = round(error.after * 1000)
        if not error.counts:
            entry["counts"] = False
    if retry is not None:
        entry["retry"] = retry
    details = _details(error)
    if details is not None:
        entry["details"] = details
    return End(entry)


def _class_name(error: BaseException) -> str:
    module, name = type(error).__module__, type(error).__qualname__
    return name if module in ("builtins", "onward.errors") else f"{module}.{name}"


def _details(error: BaseException) -> Any:
    if isinstance(error, (Fail, RetryLater)):
        details = error.details
    else:
        details = {"traceback": "".join(traceback.format_exception(error))[-TRACEBACK_CHARACTERS:]}
    if details is None:
        return None
    try:
        size = len(json.dumps(details).encode())
    except (TypeError, ValueError):
        return {"omitted": f"the details of type {type(details).__name__} cannot be written as JSON"}
    return details if size <= DETAILS_BYTES else {"omitted": f"the details had {size} bytes, more than {DETAILS_BYTES}"}


def stopped(task: TaskMessage, why: str, error: BaseException) -> End | None:
    """Returns the end of an attempt that raised an error after it was asked to stop.

    None means that no end is sent, because the lease has passed on.
    """
    if why == "lost":
        return None
    if why == "cancelled":
        return End(entry_of(task, "cancelled"))
    if why == "timeout":
        return failed(task, TimeoutError("the attempt exceeded its time limit") if is_stop(error) else error)
    return release(task, "draining" if why == "stopping" else "given_up")


def is_stop(error: BaseException) -> bool:
    """Returns True if an error means that the handler followed the request to stop."""
    return isinstance(error, (Cancelled, asyncio.CancelledError))


def with_spawned(
    end: End, task: TaskMessage, spawned: list[NewTask], max_payload: int, trace: Mapping[str, str]
) -> End:
    """Returns the end with the children that it submits, or a failure if they do not fit."""
    if not spawned or end.entry["outcome"] not in ("ok", "later", "children", "move"):
        return end
    headers, total = [], 0
    for child in spawned:
        header, payload = child.to_header(), child.encoded_payload()
        total += len(payload)
        if len(payload) > max_payload or total > MESSAGE_BYTES // 2:
            return _too_large(task, "payload of the spawned tasks", total, max_payload)
        if payload:
            end.references.append((header, "payload", payload))
            # The index is written when the message is built; until then its longest form counts.
            header["payload"] = PAYLOADS
        if trace:
            header["trace"] = dict(trace)
        headers.append(header)
    end.entry["spawn"] = headers
    size = len(json.dumps(end.entry, ensure_ascii=False).encode())
    if size > HEADER_BYTES - SPAWN_MARGIN or len(end.references) > PAYLOADS:
        text = (
            f"{len(spawned)} spawned tasks need {size} bytes of a header, more than {HEADER_BYTES};"
            " submit them with `submit`, with keys"
        )
        return End({**entry_of(task, "fail"), "class": "SpawnTooLarge", "message": text, "retry": False})
    return end


def refused(task: str, fence: str, why: str) -> End:
    """Returns the failure that is sent after the gateway refused an end."""
    message = cut(f"the gateway refused the end of this attempt: {why}", TEXT_BYTES)
    entry = {"task": task, "fence": fence, "outcome": "fail", "class": "Refused", "message": message, "retry": False}
    return End(entry)


def number_payloads(references: list[Reference], payloads: list[bytes]) -> None:
    """Writes the index of each payload into its field, and adds the payload to the message."""
    for target, name, payload in references:
        target[name] = len(payloads)
        payloads.append(payload)
