"""The bodies of the HTTP API, from values and back."""

from __future__ import annotations

import base64
from typing import Any

from onward import _payload
from onward.client_types import Event, Orchestration, Run, RunStep
from onward.tasks import NewTask, Submitted

_TIMES = {
    "delay_ms": "after",
    "ttl_ms": "ttl",
    "timeout_ms": "timeout",
    "heartbeat_ms": "heartbeat_timeout",
    "keep_key_ms": "keep_key_for",
}


def task_body(task: NewTask) -> dict[str, Any]:
    """Returns a task as the HTTP API takes it.

    Raises ValueError if a field is out of its range, or is none that the API takes.
    """
    header = task.to_header()
    if "headers" in header:
        raise ValueError("a task that a client submits has no headers; use tags, or put them into the payload")
    body = {_TIMES.get(name, name): f"{value}ms" if name in _TIMES else value for name, value in header.items()}
    if "retry" in body:
        body["retry"] = _retry(header["retry"])
    if isinstance(task.payload, (bytes, bytearray, memoryview)):
        body["payload_base64"] = base64.b64encode(task.payload).decode()
    elif task.payload is not None:
        body["payload"] = task.payload
    return body


def _retry(header: dict[str, Any]) -> dict[str, Any]:
    def times(*names: str) -> dict[str, str]:
        return {name: f"{header[f'{name}_ms']}ms" for name in names}

    backoff: dict[str, Any]
    match header["backoff"]:
        case "constant":
            backoff = {"constant": {"delay": f"{header['initial_ms']}ms"}}
        case "linear":
            backoff = {"linear": times("initial", "increment", "maximum")}
        case name:
            kind = "exponential_jitter" if name == "jitter" else "exponential"
            backoff = {kind: {**times("initial", "maximum"), "factor": header["factor"]}}
    return {"attempts": header["attempts"], "backoff": backoff}


def encode(body: Any) -> bytes:
    """Returns a body as JSON. Raises PayloadError if a payload has no JSON form."""
    return _payload.encode(body)


def submitted_of(body: dict[str, Any]) -> Submitted:
    """Returns the result of a submit or start; a body with a state is the ended task."""
    return Submitted(body["id"], body.get("outcome", "inserted"))


def event_of(body: dict[str, Any]) -> Event:
    """Returns an event."""
    names = ("cursor", "change", "task", "kind", "queue", "at", "attempt")
    return Event(**{name: body[name] for name in names if name in body})


def run_of(body: dict[str, Any]) -> Run:
    """Returns a run and its steps."""
    names = ("name", "state", "attempts", "reason", "question", "task")
    steps = tuple(
        RunStep(depends_on=tuple(step["depends_on"]), **{name: step[name] for name in names if name in step})
        for step in body["steps"]
    )
    return Run(body["id"], body["workflow"], body["phase"], body["is_ended"], steps)


def orchestration_of(body: dict[str, Any]) -> Orchestration:
    """Returns the state of an orchestration."""
    values = {name: _content(value) for name, value in body["values"].items()}
    task, awaits = body["task"], tuple(body["awaits"])
    return Orchestration(task["id"], task["state"], body["paused"], awaits, _content(body.get("status")), values)


def _content(content: dict[str, Any] | None) -> Any:
    if content is None:
        return None
    return base64.b64decode(content["base64"]) if "base64" in content else content.get("json")
