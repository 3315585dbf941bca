"""Replays the code of an orchestration over its history, and collects what it decides after that."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from onward import _guard, _payload
from onward._futures import Branch, Future, Scheduler
from onward._turn import COMMANDS, Event, TurnReply, data_of, text_of
from onward.errors import Cancelled, Fail, Nondeterminism, TaskFailed
from onward.tasks import NewTask

Start = Callable[["Replay"], Coroutine[Any, Any, Any]]
"""Begins the code of an orchestration."""

MASK = (1 << 64) - 1


class ContinueAsNew(BaseException):
    """Ends the code, which begins again with another payload."""

    def __init__(self, payload: bytes) -> None:
        super().__init__("the orchestration continues as new")
        self.payload = payload


class Operation(Future[Any]):
    """A task or a timer, with the number under which the history has it."""

    def __init__(self, replay: Replay, number: int, kind: str | None) -> None:
        super().__init__(replay.scheduler)
        self._replay = replay
        self.number = number
        self.kind = kind
        self.decode: Callable[[bytes], Any] = _payload.decode_json

    def cancel(self) -> None:
        """Gives the operation up: a task is cancelled, a timer forgotten."""
        if not self._is_done:
            self._replay.cancel_operation(self)
        super().cancel()


class SignalWait(Future[Any]):
    """The wait for a signal of a name."""

    def __init__(self, replay: Replay, name: str, decode: Callable[[bytes], Any]) -> None:
        super().__init__(replay.scheduler)
        self._replay = replay
        self.name = name
        self.decode = decode
        self.payload: bytes | None = None
        self.is_taken = False

    def deliver(self, payload: bytes) -> None:
        """Ends the wait with a signal."""
        self.payload = payload
        self._replay.delivered(self)
        try:
            self.complete(self.decode(payload))
        except _payload.PayloadError as error:
            self.complete(error=Fail(f"the signal `{self.name}`: {error}"))

    def result(self) -> Any:
        self.is_taken = True
        return super().result()

    def cancel(self) -> None:
        """Gives the wait up. A signal that it has got, and that nothing has read, goes to the next one."""
        if not self._is_done:
            self._replay.forget_wait(self)
        elif self.payload is not None and not self.is_taken:
            self.is_taken = True
            self._replay.return_signal(self.name, self.payload)
        super().cancel()


class Replay:
    """The code of one orchestration, at a position of its history."""

    def __init__(self, start: Start) -> None:
        self.scheduler = Scheduler()
        self.now_us = 0
        self.is_replaying = True
        self.cancel_requested = False
        self.length = 0
        """The number of events of the history, with those of the last turn."""
        self._start = start
        self._seed = 0
        self._main: Branch[Any] | None = None
        self._numbers = 0
        self._open: dict[int, Operation] = {}
        self._commands: deque[dict[str, Any]] = deque()
        self._signals: dict[str, deque[bytes]] = {}
        self._waiting: dict[str, deque[SignalWait]] = {}
        self._decisions: list[dict[str, Any]] = []
        self._delivered: list[SignalWait] = []

    # Calls of the context of the code.

    def submit(self, task: NewTask, *, orchestration: bool) -> Operation:
        """Submits a task, or starts another orchestration."""
        fields = task.to_header()
        if task.headers:
            raise ValueError("a task of an orchestration has no headers; use its tags or its payload")
        fields["data"] = text_of(task.encoded_payload())
        if orchestration:
            fields["orchestration"] = True
        operation = self._begin(task.kind)
        self._commands.append({"do": "task", "operation": operation.number, **fields})
        return operation

    def timer(self, until_us: int) -> Operation:
        """Waits until a time."""
        operation = self._begin(None)
        self._commands.append({"do": "timer", "operation": operation.number, "until_us": until_us})
        return operation

    def _begin(self, kind: str | None) -> Operation:
        self._numbers += 1
        operation = self._open[self._numbers] = Operation(self, self._numbers, kind)
        return operation

    def cancel_operation(self, operation: Operation) -> None:
        """Records that the code waits no longer for an operation."""
        if self._open.pop(operation.number, None) is not None:
            self._commands.append({"do": "cancel", "operation": operation.number})

    def wait_signal(self, name: str, decode: Callable[[bytes], Any]) -> SignalWait:
        """Waits for a signal. One that is here already ends the wait."""
        wait = SignalWait(self, name, decode)
        waiting = self._signals.get(name)
        if waiting:
            wait.deliver(waiting.popleft())
        else:
            self._waiting.setdefault(name, deque()).append(wait)
        return wait

    def delivered(self, wait: SignalWait) -> None:
        """Notes that a wait has its signal, which the code may not have read."""
        self._delivered.append(wait)

    def forget_wait(self, wait: SignalWait) -> None:
        """Forgets a wait for a signal."""
        self._waiting[wait.name].remove(wait)

    def return_signal(self, name: str, payload: bytes) -> None:
        """Gives a signal to the next wait, or keeps it as the next one."""
        waiting = self._waiting.get(name)
        if waiting:
            waiting.popleft().deliver(payload)
        else:
            self._signals.setdefault(name, deque()).appendleft(payload)

    def draw(self) -> int:
        """Returns 64 random bits, the same in every replay (SplitMix64)."""
        self._seed = (self._seed + 0x9E3779B97F4A7C15) & MASK
        mixed = ((self._seed ^ (self._seed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return mixed ^ (mixed >> 31)

    def future_of(self, awaited: Awaitable[Any]) -> Future[Any]:
        """Returns the future of an operation or a coroutine."""
        return self.scheduler.future_of(awaited)

    # The turn.

    def run(self, events: list[Event], position: int) -> TurnReply:
        """Replays the events before the position and reads those after it.

        Raises Nondeterminism if the code differs from its history, and what the code raises if it
        is a fault that a correction of the code can mend.
        """
        with _guard.active():
            for place, event in enumerate(events[:position]):
                self._replay_one(place, event)
            if self._commands:
                raise self._difference(position, None)
            self.is_replaying, self.length = False, position
            return self._read(events[position:])

    def proceed(self, arrivals: list[Event]) -> TurnReply:
        """Reads the new events of another turn, and raises what `run` raises."""
        with _guard.active():
            self._decisions = []
            self._delivered = [wait for wait in self._delivered if not wait.is_taken]
            self.scheduler.prune()
            return self._read(arrivals)

    def close(self) -> None:
        """Drops the code where it is."""
        with _guard.active():
            self.scheduler.close()

    def _read(self, arrivals: list[Event]) -> TurnReply:
        read = 0
        for event in arrivals:
            if self._main is not None and self._main.done:
                break
            if self._accepts(event):
                self._feed(event)
                self.length += 1 + len(self._commands)
                self._decide(read)
            read += 1
        return self._reply(read)

    def _replay_one(self, place: int, event: Event) -> None:
        if event["e"] in COMMANDS:
            if not self._commands or not _is_same(self._commands[0], event):
                raise self._difference(place, event)
            self._commands.popleft()
            return
        has_ended = self._main is not None and self._main.done and event["e"] != "turn"
        if self._commands or has_ended or not self._accepts(event):
            raise self._difference(place, event)
        self._feed(event)

    def _difference(self, place: int, event: Event | None) -> Nondeterminism:
        found = self._commands[0] if self._commands else None
        expected = None if event is None else _event_text(event)
        if found is not None:
            does = _command_text(found)
        elif self._main is not None and self._main.done:
            does = f"its end ({_end_text(self._main)})"
        else:
            does = None
        return Nondeterminism(place, expected, does, _cause(event, found))

    def _accepts(self, event: Event) -> bool:
        name = event["e"]
        if name not in ("task_ended", "timer_fired"):
            return True
        operation = self._open.get(event["operation"])
        return operation is not None and (operation.kind is None) == (name == "timer_fired")

    def _feed(self, event: Event) -> None:
        match event["e"]:
            case "started":
                self.now_us, self._seed = event["at_us"], int(event["seed"])
                self._main = Branch(self.scheduler, self._start(self))
            case "turn":
                self.now_us = event["at_us"]
                return
            case "task_ended":
                self._end_task(self._open.pop(event["operation"]), event)
            case "timer_fired":
                self._open.pop(event["operation"]).complete()
            case "signal":
                self._receive(event)
            case "signal_carried":
                self._receive(event)
                return
            case "cancel_requested":
                self.cancel_requested = True
                if self._main is not None:
                    self._main.cancel()
            case _:
                return
        self.scheduler.run()
        if self._main is not None and self._main.done:
            for operation in list(self._open.values()):
                self.cancel_operation(operation)

    def _receive(self, event: Event) -> None:
        """Gives a signal to the oldest wait, or keeps it behind the others."""
        name, payload = event["name"], data_of(event.get("payload"))
        waiting = self._waiting.get(name)
        if waiting:
            waiting.popleft().deliver(payload)
        else:
            self._signals.setdefault(name, deque()).append(payload)

    @staticmethod
    def _end_task(operation: Operation, event: Event) -> None:
        kind, state = operation.kind or "", event["state"]
        if state != "completed":
            text = event.get("error") or "no error was reported"
            if state == "not_started":
                text = f"task {event.get('existing')} has its key"
            operation.complete(error=TaskFailed(state, text, kind=kind))
            return
        try:
            operation.complete(operation.decode(data_of(event.get("result"))))
        except _payload.PayloadError as error:
            operation.complete(error=Fail(f"the result of the task `{kind}`: {error}"))

    def _decide(self, index: int) -> None:
        while self._commands:
            self._decisions.append({"after": index, **self._commands.popleft()})

    def _reply(self, read: int) -> TurnReply:
        if self._main is None or not self._main.done:
            waits = sorted(name for name, waiting in self._waiting.items() if waiting)
            return TurnReply(read, {"do": "wait"}, self._decisions, waits)
        return TurnReply(read, self._end(self._main), self._decisions)

    def _end(self, main: Branch[Any]) -> dict[str, Any]:
        try:
            value = main.result()
        except ContinueAsNew as again:
            return self._continue_as_new(again.payload)
        except Cancelled as error:
            return {"do": "cancelled"} if self.cancel_requested else {"do": "fail", "error": str(error)}
        except (Fail, TaskFailed, TimeoutError) as error:
            return {"do": "fail", "error": f"{type(error).__name__}: {error}"}
        return {"do": "complete", "result": text_of(b"" if value is None else _payload.encode(value))}

    def _continue_as_new(self, payload: bytes) -> dict[str, Any]:
        for wait in reversed(self._delivered):
            if not wait.is_taken and wait.payload is not None:
                self._signals.setdefault(wait.name, deque()).appendleft(wait.payload)
        signals = [
            {"name": name, "payload": text_of(signal)}
            for name, waiting in sorted(self._signals.items())
            for signal in waiting
        ]
        end: dict[str, Any] = {"do": "continue_as_new", "payload": text_of(payload)}
        if signals:
            end["signals"] = signals
        return end


def _is_same(command: dict[str, Any], event: Event) -> bool:
    if command["operation"] != event["operation"]:
        return False
    match command["do"], event["e"]:
        case "task", "task_submitted":
            return bool(command["kind"] == event["kind"])
        case "timer", "timer_started":
            return bool(command["until_us"] == event["until_us"])
        case "cancel", "operation_cancelled":
            return True
    return False


def _event_text(event: Event) -> str:
    operation = event.get("operation")
    texts = {
        "task_submitted": f"the submit of the task `{event.get('kind')}` (operation {operation})",
        "timer_started": f"a timer until {event.get('until_us')} µs (operation {operation})",
        "operation_cancelled": f"the cancellation of operation {operation}",
        "task_ended": f"the end of the task of operation {operation}",
        "timer_fired": f"the end of the timer of operation {operation}",
        "signal": f"the signal `{event.get('name')}`",
        "cancel_requested": "a request to cancel",
    }
    return texts.get(event["e"], f"the event `{event['e']}`")


def _command_text(command: dict[str, Any]) -> str:
    operation = command["operation"]
    if command["do"] == "task":
        return f"the submit of the task `{command['kind']}` (operation {operation})"
    if command["do"] == "timer":
        return f"a timer until {command['until_us']} µs (operation {operation})"
    return f"the cancellation of operation {operation}"


def _end_text(main: Branch[Any]) -> str:
    return "it returned" if main._error is None else f"it raised {type(main._error).__name__}: {main._error}"


def _cause(event: Event | None, found: dict[str, Any] | None) -> str:
    """Returns the likely cause of a difference."""
    if event is None:
        return "the likely cause is a call that was added before the place where the orchestration waits"
    if found is None:
        return "the likely cause is a call that was removed, or a condition on something other than the context"
    if found["do"] == "timer" and event["e"] == "timer_started":
        return "the likely cause is a changed duration, or a time that does not come from `ctx.now()`"
    if found["do"] == "task" and event["e"] == "task_submitted":
        return "the likely cause is a renamed task or a changed order, such as that of a set"
    return "the likely cause is a changed order of calls, or a condition on something other than the context"
