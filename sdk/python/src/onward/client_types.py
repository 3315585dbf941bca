"""The values that a client returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from onward.errors import TaskFailed
from onward.results import TaskResult

__all__ = ["Event", "Orchestration", "Run", "RunStep", "TaskOutcome"]

T = TypeVar("T")

ENDED = frozenset({"completed", "failed", "dead", "cancelled", "expired"})
"""The states, and the names of the transitions, that end a task."""


@dataclass(frozen=True)
class TaskOutcome(TaskResult):
    """A task's state, and its result or error if it has ended."""

    @property
    def is_ended(self) -> bool:
        """True if the task has ended, in any way."""
        return self.state in ENDED

    @overload
    def value(self, kind: type[T]) -> T: ...

    @overload
    def value(self, kind: Any = None) -> Any: ...

    def value(self, kind: Any = None) -> Any:
        """Returns the result, read as the given type; without one, its JSON value.

        Raises TaskFailed if the task is not completed, and PayloadError if the result has another
        type.
        """
        if self.state != "completed":
            raise TaskFailed(self.state, self.error, task=self.task)
        return super().value(kind)


@dataclass(frozen=True)
class Event:
    """One transition of one task.

    `change` is such as `submitted`, `started` or `completed`. `cursor` is the position behind the
    event, from which `watch(after=…)` continues. An event with the change `gap` has no task: the
    server removed events before they were read.
    """

    cursor: str
    change: str
    task: str = ""
    kind: str = ""
    queue: str = ""
    at: str = ""
    attempt: int | None = None

    @property
    def is_end(self) -> bool:
        """True if the task has ended by this transition."""
        return self.change in ENDED


@dataclass(frozen=True)
class RunStep:
    """A step of a run of a workflow."""

    name: str
    state: str
    attempts: int = 0
    depends_on: tuple[str, ...] = ()
    reason: str | None = None
    question: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class Run:
    """A run of a workflow. `steps` are in an order in which each follows those that it depends on."""

    task: str
    workflow: str
    phase: str
    is_ended: bool
    steps: tuple[RunStep, ...] = ()

    def step(self, name: str) -> RunStep:
        """Returns a step by its name. Raises KeyError if there is none."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(f"run {self.task} has no step `{name}`; steps: {', '.join(it.name for it in self.steps)}")


@dataclass(frozen=True)
class Orchestration:
    """The state of an orchestration: what it awaits, and what its code published."""

    task: str
    state: str
    paused: bool
    awaits: tuple[str, ...] = ()
    status: Any = None
    values: Mapping[str, Any] = field(default_factory=dict)
