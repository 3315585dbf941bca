"""Messages of the gateway: the check of every field, once, before the worker acts on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from onward._frames import PAYLOAD_BYTES, PAYLOADS, Header, ProtocolError

NAME_BYTES = 128
"""The longest name of a kind or queue, in bytes."""

_STOP_REASONS = frozenset({"cancelled", "lost", "preempted", "timeout"})
_ACK_RESULTS = frozenset({"ok", "stale", "refused"})


def _bad(where: str, name: str, value: object, rule: str) -> ProtocolError:
    return ProtocolError("bad_field", f"`{name}` of `{where}` is {value!r:.80}; it must be {rule}")


def text(where: str, header: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """Returns a text field. Without a default, the field is required and not empty."""
    value = header.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or (default is None and not value):
        raise _bad(where, name, value, "a string")
    return value


def integer(where: str, header: Mapping[str, Any], name: str, least: int = 0, default: int | None = None) -> int:
    """Returns an integer field of at least `least`. Without a default, the field is required."""
    value = header.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise _bad(where, name, value, f"an integer of at least {least}")
    return value


def optional_integer(where: str, header: Mapping[str, Any], name: str, least: int = 0) -> int | None:
    """Returns an integer field, or None if it is absent."""
    return None if header.get(name) is None else integer(where, header, name, least)


def texts(where: str, header: Mapping[str, Any], name: str) -> dict[str, str]:
    """Returns a field that is an object of strings; empty if it is absent."""
    value = header.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise _bad(where, name, value, "an object of strings")
    return value


def entries(where: str, header: Mapping[str, Any], name: str, least: int = 0) -> list[dict[str, Any]]:
    """Returns a list of objects within the bound of entries; empty if it is absent."""
    value = header.get(name)
    if value is None:
        value = []
    if not isinstance(value, list) or len(value) < least:
        raise _bad(where, name, value, f"a list of at least {least} objects")
    if len(value) > PAYLOADS:
        raise ProtocolError("too_many", f"`{name}` of `{where}` has {len(value)} entries, more than {PAYLOADS}")
    for item in value:
        if not isinstance(item, dict):
            raise _bad(where, name, item, "a list of objects")
    return value


def payload_at(where: str, header: Mapping[str, Any], name: str, payloads: list[bytes]) -> bytes | None:
    """Returns the payload to which an index points, or None without an index."""
    index = header.get(name)
    if index is None:
        return None
    if type(index) is not int or not 0 <= index < len(payloads):
        raise _bad(where, name, index, f"an index below {len(payloads)}")
    return payloads[index]


@dataclass(frozen=True)
class Welcome:
    """The gateway's acceptance of a worker. Times are in seconds."""

    session: str
    lease: float
    heartbeat: float
    max_payload: int
    features: frozenset[str]
    gateway: str


@dataclass(slots=True)
class TaskOptions:
    """The fields of a task that most tasks do not have. Times are in seconds from its receipt."""

    queue: str = "default"
    priority: int = 128
    deadline: float | None = None
    heartbeat: float | None = None
    group: str | None = None
    key: str | None = None
    parent: str | None = None
    scheduled_at: str | None = None
    items: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    trace: Mapping[str, str] = field(default_factory=dict)


NO_OPTIONS = TaskOptions()


class TurnMessage(NamedTuple):
    """The history of an orchestration's turn. The events from `position` on are new.

    `events` are lists that follow each other. If `new_only`, they have only the new events.
    """

    events: list[bytes]
    position: int
    generation: int
    new_only: bool


class TaskMessage:
    """One task as the gateway sends it."""

    __slots__ = ("attempt", "checkpoint", "fence", "kind", "options", "payload", "task", "turn")

    def __init__(
        self,
        task: str,
        fence: str,
        kind: str,
        attempt: int,
        payload: bytes,
        checkpoint: bytes | None = None,
        options: TaskOptions = NO_OPTIONS,
    ) -> None:
        self.task = task
        self.fence = fence
        self.kind = kind
        self.attempt = attempt
        self.payload = payload
        self.checkpoint = checkpoint
        self.options = options
        self.turn: TurnMessage | None = None


class Ack(NamedTuple):
    """The fate of one end."""

    task: str
    fence: str
    result: str
    why: str


@dataclass(frozen=True)
class Alive:
    """The answer to a beat."""

    n: int
    lost: list[str]
    refused: dict[str, str]


@dataclass(frozen=True)
class Stop:
    """The request to stop an attempt. `grace` is in seconds."""

    task: str
    fence: str
    why: str
    grace: float


@dataclass(frozen=True)
class Drain:
    """The gateway stops. `within` is in seconds."""

    why: str
    within: float


@dataclass(frozen=True)
class Refusal:
    """An `error` of the gateway."""

    code: str
    text: str
    remedy: str
    fatal: bool

    def __str__(self) -> str:
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.code}: {self.text}{remedy}"


@dataclass(frozen=True)
class Reply:
    """The answer to a `submit` or `ask`."""

    request: int
    header: Header
    payloads: list[bytes]


@dataclass(frozen=True)
class Tasks:
    """Tasks to run."""

    tasks: list[TaskMessage]


@dataclass(frozen=True)
class Acks:
    """The fates of ends."""

    acks: list[Ack]


Incoming = Welcome | Tasks | Acks | Alive | Stop | Drain | Refusal | Reply


def _welcome(header: Header, _: list[bytes]) -> Welcome:
    if integer("welcome", header, "protocol", 1) != 1:
        raise _bad("welcome", "protocol", header["protocol"], "1, the only version of this worker")
    lease = integer("welcome", header, "lease_ms", 100)
    heartbeat = integer("welcome", header, "heartbeat_ms", 10)
    if heartbeat > lease // 2:
        raise _bad("welcome", "heartbeat_ms", heartbeat, f"at most half of `lease_ms` ({lease})")
    features = header.get("features") or []
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise _bad("welcome", "features", features, "a list of names")
    return Welcome(
        session=text("welcome", header, "session"),
        lease=lease / 1000,
        heartbeat=heartbeat / 1000,
        max_payload=integer("welcome", header, "max_payload", 1, PAYLOAD_BYTES),
        features=frozenset(features),
        gateway=text("welcome", header, "gateway", ""),
    )


_CORE_FIELDS = frozenset({"task", "fence", "kind", "attempt", "payload", "checkpoint"})


def _task(entry: dict[str, Any], payloads: list[bytes]) -> TaskMessage:
    """Reads a task. Its common form is checked without a call for each field."""
    task, fence, kind, attempt = entry.get("task"), entry.get("fence"), entry.get("kind"), entry.get("attempt")
    index = entry.get("payload")
    if not (task and fence and kind and type(task) is type(fence) is type(kind) is str):
        task, fence, kind = (text("tasks", entry, name) for name in ("task", "fence", "kind"))
    if type(attempt) is not int or attempt < 1:
        attempt = integer("tasks", entry, "attempt", 1)
    if type(index) is int and 0 <= index < len(payloads):
        payload = payloads[index]
    else:
        payload = payload_at("tasks", entry, "payload", payloads) or b""
    message = TaskMessage(task, fence, kind, attempt, payload)
    if not entry.keys() <= _CORE_FIELDS:
        message.options = _task_options(entry)
    if "checkpoint" in entry:
        message.checkpoint = payload_at("tasks", entry, "checkpoint", payloads)
    if entry.get("turn") is not None:
        message.turn = _turn(entry["turn"], payloads)
    return message


def _turn(entry: Any, payloads: list[bytes]) -> TurnMessage:
    if not isinstance(entry, dict):
        raise _bad("tasks", "turn", entry, "an object")
    more, new_only = entry.get("more"), entry.get("new_only")
    if more is None:
        more = []
    if new_only is None:
        new_only = False
    if not isinstance(more, list):
        raise _bad("turn", "more", more, "a list of payload indexes")
    if not isinstance(new_only, bool):
        raise _bad("turn", "new_only", new_only, "true or false")
    events: list[bytes] = []
    for index in [entry.get("events"), *more]:
        part = payload_at("turn", {"events": index}, "events", payloads)
        if part is None:
            raise _bad("turn", "events", None, "a payload index")
        events.append(part)
    return TurnMessage(events, integer("turn", entry, "position"), integer("turn", entry, "generation"), new_only)


def _task_options(entry: dict[str, Any]) -> TaskOptions:
    deadline = optional_integer("tasks", entry, "deadline_ms")
    heartbeat = optional_integer("tasks", entry, "heartbeat_ms", 1)
    return TaskOptions(
        text("tasks", entry, "queue", "default"),
        integer("tasks", entry, "priority", default=128),
        None if deadline is None else deadline / 1000,
        None if heartbeat is None else heartbeat / 1000,
        text("tasks", entry, "group", "") or None,
        text("tasks", entry, "key", "") or None,
        text("tasks", entry, "parent", "") or None,
        text("tasks", entry, "scheduled_at", "") or None,
        integer("tasks", entry, "items", default=0),
        texts("tasks", entry, "tags"),
        texts("tasks", entry, "headers"),
        texts("tasks", entry, "trace"),
    )


def _tasks(header: Header, payloads: list[bytes]) -> Tasks:
    return Tasks([_task(entry, payloads) for entry in entries("tasks", header, "tasks", 1)])


def _ack(header: Header, _: list[bytes]) -> Acks:
    acks = []
    for entry in entries("ack", header, "ends", 1):
        task, fence, result, why = entry.get("task"), entry.get("fence"), entry.get("result"), entry.get("why")
        if result not in _ACK_RESULTS:
            raise _bad("ack", "result", result, "ok, stale or refused")
        if not (task and fence and type(task) is type(fence) is str):
            task, fence = text("ack", entry, "task"), text("ack", entry, "fence")
        acks.append(Ack(task, fence, result, "" if why is None else text("ack", entry, "why", "")))
    return Acks(acks)


def _alive(header: Header, _: list[bytes]) -> Alive:
    lost = header.get("lost") or []
    if not isinstance(lost, list) or not all(isinstance(task, str) for task in lost):
        raise _bad("alive", "lost", lost, "a list of task ids")
    refused = {
        text("alive", entry, "task"): text("alive", entry, "why", "") for entry in entries("alive", header, "refused")
    }
    return Alive(integer("alive", header, "n"), lost, refused)


def _stop(header: Header, _: list[bytes]) -> Stop:
    why = header.get("why")
    if why not in _STOP_REASONS:
        raise _bad("stop", "why", why, "cancelled, lost, preempted or timeout")
    grace = integer("stop", header, "grace_ms", default=0) / 1000
    return Stop(text("stop", header, "task"), text("stop", header, "fence"), why, grace)


def _drain(header: Header, _: list[bytes]) -> Drain:
    return Drain(text("drain", header, "why", ""), integer("drain", header, "within_ms") / 1000)


def _error(header: Header, _: list[bytes]) -> Refusal:
    fatal = header.get("fatal")
    if fatal is not None and not isinstance(fatal, bool):
        raise _bad("error", "fatal", fatal, "true or false")
    return Refusal(
        text("error", header, "code"),
        text("error", header, "text", ""),
        text("error", header, "remedy", ""),
        bool(fatal),
    )


def _reply(header: Header, payloads: list[bytes]) -> Reply:
    return Reply(integer("reply", header, "request"), header, payloads)


_TYPES: dict[str, Callable[[Header, list[bytes]], Incoming]] = {
    "welcome": _welcome,
    "tasks": _tasks,
    "ack": _ack,
    "alive": _alive,
    "stop": _stop,
    "drain": _drain,
    "error": _error,
    "reply": _reply,
}


def parse(header: Header, payloads: list[bytes]) -> Incoming:
    """Returns a checked message of the gateway.

    Raises ProtocolError `unsupported` for an unknown type, `bad_field` for a wrong field.
    """
    read = _TYPES.get(header["t"])
    if read is None:
        raise ProtocolError("unsupported", f"the type `{header['t']:.80}` is unknown")
    return read(header, payloads)
