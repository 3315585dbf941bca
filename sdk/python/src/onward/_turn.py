"""Turns of orchestrations on the wire: events in, decisions out."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from onward._frames import ProtocolError

DECISIONS = 20_000
"""The largest number of decisions of one turn."""

COMMANDS = frozenset({"task_submitted", "timer_started", "operation_cancelled"})
"""The events that record a decision of the code."""

ARRIVALS = frozenset(
    {"started", "turn", "task_ended", "timer_fired", "signal", "signal_carried", "cancel_requested", "cancel_carried"}
)
"""The events that came from outside."""

Event = dict[str, Any]


@dataclass
class TurnReply:
    """The decisions of the code in a turn, and its state after it."""

    read: int
    end: dict[str, Any]
    decisions: list[dict[str, Any]] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    length: int | None = None
    """The number of events of the history after the turn, if the worker keeps the code."""

    def encode(self) -> bytes:
        """Returns the reply as the protocol writes it."""
        fields: dict[str, Any] = {"read": self.read, "decisions": self.decisions, "waits": self.waits, "end": self.end}
        if self.length is not None:
            fields["length"] = self.length
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def read_events(data: bytes) -> list[Event]:
    """Returns the events of a turn. Raises ProtocolError if they are not a list of known events."""
    try:
        events = json.loads(data)
    except ValueError as error:
        raise ProtocolError("bad_field", f"the events of a turn are no JSON: {error}") from None
    if not isinstance(events, list):
        raise ProtocolError("bad_field", "the events of a turn are no list")
    for place, event in enumerate(events):
        name = event.get("e") if isinstance(event, dict) else None
        if name not in COMMANDS and name not in ARRIVALS:
            raise ProtocolError(
                "bad_field", f"event {place} of a turn is {name!r:.80}, which this version does not know"
            )
    return events


def data_of(value: str | None) -> bytes:
    """Returns bytes from their form within JSON."""
    return b"" if value is None else base64.b64decode(value)


def text_of(data: bytes) -> str:
    """Returns the form of bytes within JSON."""
    return base64.b64encode(data).decode()
