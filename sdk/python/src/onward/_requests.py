"""Requests of a handler to the gateway, and the reading of their replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onward._frames import MESSAGE_BYTES, ProtocolError
from onward._messages import Reply, entries, payload_at, text
from onward.errors import Refused
from onward.results import Child, TaskResult
from onward.tasks import NewTask, Submitted

LONGEST_WAIT = 60.0
"""The longest wait of one `ask`, in seconds."""


def new_task(task: str | NewTask, payload: Any, options: Mapping[str, Any]) -> NewTask:
    """Returns a new task from the arguments of `submit` or `spawn`, with every field checked."""
    if isinstance(task, NewTask):
        if payload is not None or options:
            raise TypeError("a NewTask has its payload and options already")
    else:
        task = NewTask(task, payload, **options)
    task.to_header()
    return task


def encode_tasks(
    tasks: Sequence[NewTask], features: frozenset[str], max_payload: int, trace: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Returns the entries and payloads of a submit.

    Raises ValueError for a payload that is too large, Refused for headers that the gateway cannot keep.
    """
    headers: list[dict[str, Any]] = []
    payloads: list[bytes] = []
    size = 0
    for task in tasks:
        header, payload = task.to_header(), task.encoded_payload()
        if task.headers and "headers" not in features:
            raise Refused("unsupported", "the gateway has no feature `headers`", "submit without headers, or use tags")
        if trace and "headers" in features:
            header["trace"] = dict(trace)
        size += len(payload)
        if len(payload) > max_payload or (len(tasks) > 1 and size > MESSAGE_BYTES):
            raise ValueError(
                f"the payload of a task of kind `{task.kind}` has {len(payload)} bytes; one may have"
                f" {max_payload}, and those of one submit {MESSAGE_BYTES} together"
            )
        if payload:
            header["payload"] = len(payloads)
            payloads.append(payload)
        headers.append(header)
    return headers, payloads


def check_reply(reply: Reply) -> Reply:
    """Returns the reply, or raises Refused if it is an error."""
    error = reply.header.get("error")
    if error is not None:
        if not isinstance(error, dict):
            raise ProtocolError("bad_field", f"`error` of `reply` is {error!r:.80}; it must be an object")
        raise Refused(
            text("reply", error, "code"), text("reply", error, "text", ""), text("reply", error, "remedy", "")
        )
    return reply


def read_submitted(reply: Reply) -> list[Submitted]:
    """Returns the reply to a submit."""
    found = entries("reply", check_reply(reply).header, "tasks", 1)
    return [Submitted(text("reply", entry, "task"), text("reply", entry, "result")) for entry in found]


def result_fields(task: str, wait: float) -> dict[str, Any]:
    """Returns the fields of an `ask` for a result."""
    if not 0 <= wait <= LONGEST_WAIT:
        raise ValueError(f"wait is {wait}; it must be from 0 to {LONGEST_WAIT} seconds")
    return {"task": task, "wait_ms": round(wait * 1000)}


def read_result(task: str, reply: Reply) -> TaskResult:
    """Returns the reply to an `ask` for a result."""
    header = check_reply(reply).header
    return TaskResult(
        task,
        text("reply", header, "state"),
        payload_at("reply", header, "payload", reply.payloads),
        text("reply", header, "error_text", "") or None,
    )


def read_children(reply: Reply, children: list[Child]) -> dict[str, Any] | None:
    """Adds a page of children. Returns the fields that ask for the next page, or None."""
    for entry in entries("reply", check_reply(reply).header, "children"):
        payload = payload_at("reply", entry, "payload", reply.payloads)
        error = text("reply", entry, "error_text", "") or None
        task, state = text("reply", entry, "task"), text("reply", entry, "state")
        children.append(Child(task, state, payload, error, kind=text("reply", entry, "kind")))
    return _next_page(reply)


def read_items(reply: Reply, items: list[bytes]) -> dict[str, Any] | None:
    """Adds a page of items. Returns the fields that ask for the next page, or None."""
    for entry in entries("reply", check_reply(reply).header, "items"):
        items.append(payload_at("reply", entry, "payload", reply.payloads) or b"")
    return _next_page(reply)


def _next_page(reply: Reply) -> dict[str, Any] | None:
    after = text("reply", reply.header, "next", "")
    return {"after": after} if after else None
