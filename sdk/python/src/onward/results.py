"""Results of other tasks, as a handler reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from onward import _payload

__all__ = ["Child", "Step", "TaskResult"]

T = TypeVar("T")


@dataclass(frozen=True)
class TaskResult:
    """A task's state, and its result or error if it has ended."""

    task: str
    state: str
    payload: bytes | None = None
    error: str | None = None

    @overload
    def value(self, kind: type[T]) -> T: ...

    @overload
    def value(self, kind: Any = None) -> Any: ...

    def value(self, kind: Any = None) -> Any:
        """Returns the result, read as the given type; without one, its JSON value."""
        return _payload.decoder_for(kind)(self.payload or b"")


@dataclass(frozen=True)
class Child(TaskResult):
    """A child of the task."""

    kind: str = ""


class Step:
    """The payload of a workflow's step without `with`: the input of the run, and earlier results."""

    __slots__ = ("input", "payload", "results")

    def __init__(self, payload: Any) -> None:
        self.payload = payload
        fields = payload if isinstance(payload, dict) else {}
        self.input: Any = fields.get("input", payload)
        self.results: Mapping[str, Any] = fields.get("results") or {}

    @overload
    def result(self, name: str, kind: type[T]) -> T: ...

    @overload
    def result(self, name: str, kind: Any = None) -> Any: ...

    def result(self, name: str, kind: Any = None) -> Any:
        """Returns the result of an earlier step by its name, read as the given type.

        Raises KeyError with the known names if no ancestor has this name.
        """
        if name not in self.results:
            known = ", ".join(sorted(self.results)) or "none"
            raise KeyError(f"no result of a step `{name}`; results of its ancestors: {known}")
        value = self.results[name]
        return value if kind is None else _payload.converter_for(kind)(value, f"results.{name}")
