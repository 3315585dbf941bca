"""The outbox: what waits to be sent, and what is kept until the gateway acknowledges it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from onward import _ends
from onward._context_base import ContextBase
from onward._ends import End
from onward._frames import PAYLOADS, Header, ProtocolError, encode
from onward._messages import Ack, Alive, Reply, Welcome
from onward.errors import Cancelled, Refused, Unavailable

ENDS_OF_A_MESSAGE = 128
"""The number of ends that are gathered into one message."""

GATHERED_BYTES = 1_048_576
"""The size of payloads at which no further end is gathered into a message."""

HELD = 1_024
"""The largest number of tasks that run, wait for a slot, or wait for their acknowledgement."""

ENTRIES_OF_A_BEAT = 512
"""The largest number of tasks in one beat, so that its header stays within its bound."""

PROGRESS_SECONDS = 0.1
"""The shortest time between two beats that carry progress."""

BEAT_FRACTION = 0.75
"""The part of the gateway's heartbeat interval after which a beat is sent."""

_NO_GATEWAY = "the worker has no connection to a gateway any more"

Key = tuple[str, str]


@dataclass(eq=False)
class Request:
    """A submit or ask without a reply."""

    header: Header
    payloads: list[bytes]
    resend: bool
    future: Future[Reply] = field(default_factory=Future)


@dataclass(eq=False)
class Checkpoint:
    """A checkpoint that is not known to be durable."""

    context: ContextBase
    payload: bytes
    future: Future[None] = field(default_factory=Future)


@dataclass
class Batch:
    """The entries to send next, taken from the outbox in one piece."""

    raw: list[bytes]
    ends: list[End]
    requests: list[tuple[int, Request]]
    beat: int | None
    touched: list[ContextBase]
    checkpoints: list[Checkpoint]
    credit: int | None


class Outbox:
    """Everything that the worker has to send. Handlers add to it, one writer takes from it.

    `window` is the number of tasks that the worker wants to hold at once.
    """

    def __init__(self, window: int, clock: Callable[[], float]) -> None:
        self.held: dict[str, ContextBase] = {}
        self.kept: dict[Key, End] = {}
        self.lease_end = float("inf")
        self.on_idle: Callable[[], object] | None = None
        self._changed = threading.Condition(threading.Lock())
        self._waiting = False
        self._closed = True
        self._window = min(window, HELD)
        self._clock = clock
        self._draining = self._leaving = self._abandoned = False
        self._received = self._credit = 0
        self._raw: deque[bytes] = deque()
        self._ends: deque[End] = deque()
        self._refused: set[Key] = set()
        self._requests: dict[int, Request] = {}
        self._unsent: deque[int] = deque()
        self._request_number = 0
        self._touched: dict[str, ContextBase] = {}
        self._checkpoints: list[Checkpoint] = []
        self._beats: dict[int, tuple[float, list[Checkpoint]]] = {}
        self._beat_number = 0
        self._interval = self._lease = 0.0
        self._next_beat = self._next_progress = 0.0

    # The life of a connection.

    def open(self, welcome: Welcome) -> None:
        """Begins a connection: credit starts again, and what was not acknowledged is sent again."""
        with self._changed:
            now = self._clock()
            self._closed, self._received, self._credit = False, 0, 0
            self._raw.clear()
            self._ends = deque(self.kept.values())
            for _, checkpoints in self._beats.values():
                self._checkpoints += checkpoints
            self._beats.clear()
            self._unsent = deque(self._requests)
            self._lease = welcome.lease
            self.lease_end = now + welcome.lease
            self._interval = welcome.heartbeat * BEAT_FRACTION
            self._next_beat = now + self._interval
            if self._draining:
                self._raw.append(encode({"t": "drain"}))
            if self._leaving:
                self._raw.append(encode({"t": "bye"}))
            self._changed.notify_all()

    def close(self) -> None:
        """Ends a connection. Requests that may not be sent twice fail."""
        with self._changed:
            self._closed = True
            lost = [number for number, request in self._requests.items() if not request.resend]
            failed = [self._requests.pop(number) for number in lost]
            self._changed.notify_all()
        for request in failed:
            request.future.set_exception(
                Unavailable("the connection to the gateway was lost before the reply; give the task a key")
            )

    def abandon(self) -> None:
        """Fails every request and checkpoint, because no connection will follow."""
        with self._changed:
            self._abandoned = True
            requests, self._requests = list(self._requests.values()), {}
            checkpoints = self._checkpoints + [one for _, many in self._beats.values() for one in many]
            self._checkpoints, self._beats = [], {}
        error = Unavailable(_NO_GATEWAY)
        for request in requests:
            request.future.set_exception(error)
        for checkpoint in checkpoints:
            checkpoint.future.set_exception(error)

    # Calls of the handlers.

    def receive(self, contexts: list[ContextBase]) -> list[ContextBase]:
        """Counts received tasks against the credit. Returns those that the worker did not hold yet."""
        with self._changed:
            self._received += len(contexts)
            fresh = []
            for context in contexts:
                task = context.task
                known = self.held.get(task.task)
                if (known is not None and known.task.fence == task.fence) or (task.task, task.fence) in self.kept:
                    continue
                self.held[task.task] = context
                fresh.append(context)
            return fresh

    def end(self, context: ContextBase, end: End | None) -> None:
        """Ends an attempt. None means that nothing is sent, because the lease has passed on."""
        self.end_all([(context, end)])

    def end_all(self, ended: list[tuple[ContextBase, End | None]]) -> None:
        """Ends several attempts."""
        with self._changed:
            for context, end in ended:
                task = context.task
                if self.held.get(task.task) is context:
                    del self.held[task.task]
                self._touched.pop(task.task, None)
                if end is not None:
                    self.kept[task.task, task.fence] = end
                    self._ends.append(end)
            self._wake()
            idle = self._is_idle()
        if idle:
            self._tell_idle()

    def touch(self, context: ContextBase) -> None:
        """Has the next beat carry the context's heartbeat and progress."""
        task = context.task.task
        if task not in self._touched:
            with self._changed:
                # A thread that a handler left behind may report after the end.
                if self.held.get(task) is context:
                    self._touched[task] = context
                    self._wake()

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Sends a checkpoint with the next beat, which is sent at once."""
        with self._changed:
            abandoned = self._abandoned
            if not abandoned:
                self._checkpoints.append(checkpoint)
                self._wake()
        if abandoned:
            checkpoint.future.set_exception(Unavailable(_NO_GATEWAY))

    def request(self, request: Request) -> None:
        """Sends a request."""
        with self._changed:
            abandoned = self._abandoned
            if not abandoned:
                self._request_number += 1
                self._requests[self._request_number] = request
                self._unsent.append(self._request_number)
                self._wake()
        if abandoned:
            request.future.set_exception(Unavailable(_NO_GATEWAY))

    def send(self, message: bytes) -> None:
        """Sends bytes before everything else."""
        with self._changed:
            self._raw.append(message)
            self._wake()

    def leave(self, *, last: bool) -> None:
        """Sends `bye` on this connection. The last one is sent on a connection that begins now, too."""
        with self._changed:
            self._leaving = last
            self._raw.append(encode({"t": "bye"}))
            self._wake()

    def drain(self, draining: bool) -> None:
        """Stops granting credit, or begins again."""
        with self._changed:
            if draining and not self._draining:
                self._raw.append(encode({"t": "drain"}))
            self._draining = draining
            self._wake()
            idle = self._is_idle()
        if idle:
            self._tell_idle()

    def _wake(self) -> None:
        if self._waiting:
            self._waiting = False
            self._changed.notify()

    def _is_idle(self) -> bool:
        return self._draining and not self.held and not self.kept

    def _tell_idle(self) -> None:
        if self.on_idle is not None:
            self.on_idle()

    # Replies of the gateway.

    def acknowledge(self, acks: list[Ack]) -> None:
        """Forgets acknowledged ends. A refused end is replaced by a failure that says why."""
        with self._changed:
            for ack in acks:
                key = (ack.task, ack.fence)
                if ack.result == "refused" and key in self.kept:
                    self._replace(key, ack.why)
                else:
                    self.kept.pop(key, None)
                    self._refused.discard(key)
            if self._credit == self._received:
                self._wake()
            idle = self._is_idle()
        if idle:
            self._tell_idle()

    def _replace(self, key: Key, why: str) -> None:
        task, fence = key
        if key in self._refused:
            end = End({"task": task, "fence": fence, "outcome": "release", "why": "given_up"})
        else:
            self._refused.add(key)
            end = _ends.refused(task, fence, why)
        self.kept[key] = end
        self._ends.append(end)
        self._wake()

    def alive(self, alive: Alive) -> None:
        """Extends the lease from the sending of the answered beat, and ends its checkpoints."""
        with self._changed:
            sent, checkpoints = self._beats.pop(alive.n, (None, []))
            if sent is not None:
                self.lease_end = max(self.lease_end, sent + self._lease)
        for checkpoint in checkpoints:
            task = checkpoint.context.task_id
            if task in alive.lost:
                checkpoint.future.set_exception(Cancelled("lost"))
            elif task in alive.refused:
                checkpoint.future.set_exception(Refused("invalid", alive.refused[task]))
            else:
                checkpoint.future.set_result(None)

    def reply(self, reply: Reply) -> None:
        """Ends a request. A reply to none is ignored."""
        with self._changed:
            request = self._requests.pop(reply.request, None)
        if request is not None:
            request.future.set_result(reply)

    # Calls of the writer.

    def take(self) -> Batch | None:
        """Waits for something to send and returns it; None when the connection or lease has ended."""
        with self._changed:
            while not self._closed:
                now = self._clock()
                if now >= self.lease_end:
                    return None
                batch = self._batch(now)
                if batch is not None:
                    return batch
                self._waiting = True
                self._changed.wait(max(0.0, self._next_time() - now))
                self._waiting = False
            return None

    def _next_time(self) -> float:
        times = [self._next_beat, self.lease_end]
        if self._touched:
            times.append(self._next_progress)
        return min(times)

    def _batch(self, now: float) -> Batch | None:
        raw, self._raw = list(self._raw), deque()
        ends = self._gather()
        requests = []
        while self._unsent:
            number = self._unsent.popleft()
            if number in self._requests:
                requests.append((number, self._requests[number]))
        beat, touched, checkpoints = self._take_beat(now)
        credit = self._raise_credit()
        if not (raw or ends or requests or beat is not None or credit is not None):
            return None
        return Batch(raw, ends, requests, beat, touched, checkpoints, credit)

    def _gather(self) -> list[End]:
        ends: list[End] = []
        size = 0
        while self._ends and len(ends) < ENDS_OF_A_MESSAGE:
            for _, _, payload in self._ends[0].references:
                size += len(payload)
            if ends and size > GATHERED_BYTES:
                break
            ends.append(self._ends.popleft())
        return ends

    def _take_beat(self, now: float) -> tuple[int | None, list[ContextBase], list[Checkpoint]]:
        due = now >= self._next_beat or (self._touched and now >= self._next_progress)
        if not due and not self._checkpoints:
            return None, [], []
        count = size = 0
        for checkpoint in self._checkpoints[:ENTRIES_OF_A_BEAT]:
            size += len(checkpoint.payload)
            if count and size > GATHERED_BYTES:
                break
            count += 1
        checkpoints, self._checkpoints = self._checkpoints[:count], self._checkpoints[count:]
        room = ENTRIES_OF_A_BEAT - count
        touched = [self._touched.pop(task) for task in list(self._touched)[:room]]
        self._beat_number += 1
        self._beats[self._beat_number] = (now, checkpoints)
        self._next_beat, self._next_progress = now + self._interval, now + PROGRESS_SECONDS
        return self._beat_number, touched, checkpoints

    def _raise_credit(self) -> int | None:
        if self._draining:
            return None
        held = len(self.held)
        room = min(self._window - held, HELD - held - len(self.kept))
        credit = self._received + max(0, room)
        if credit <= self._credit:
            return None
        self._credit = credit
        return credit


def encode_batch(batch: Batch) -> bytes:
    """Returns the messages of a batch as bytes."""
    parts = batch.raw
    if batch.ends:
        parts += _encode_ends(batch.ends)
    for number, request in batch.requests:
        parts.append(encode({**request.header, "request": number}, request.payloads))
    if batch.beat is not None:
        parts += _encode_beat(batch.beat, batch.touched, batch.checkpoints)
    if batch.credit is not None:
        parts.append(encode({"t": "grant", "credit": batch.credit}))
    return b"".join(parts)


def _encode_ends(ends: list[End]) -> list[bytes]:
    """Returns the messages that carry the ends: one, or more where a header would be too long."""
    payloads: list[bytes] = []
    for end in ends:
        _ends.number_payloads(end.references, payloads)
    try:
        if len(payloads) > PAYLOADS:
            raise ProtocolError("too_many", "an end has too many payloads")
        return [encode({"t": "end", "ends": [end.entry for end in ends]}, payloads)]
    except ProtocolError:
        if len(ends) == 1:
            raise
        middle = len(ends) // 2
        return _encode_ends(ends[:middle]) + _encode_ends(ends[middle:])


def _encode_beat(n: int, touched: list[ContextBase], checkpoints: list[Checkpoint]) -> list[bytes]:
    """Returns the beat with its entries; checkpoints of which the header would be too long follow."""
    entries: dict[str, dict[str, Any]] = {}
    payloads: list[bytes] = []
    for context in touched:
        entry = entries[context.task_id] = {"task": context.task_id, "fence": context.task.fence}
        if context.progress_fields:
            entry["progress"] = context.progress_fields
    for checkpoint in checkpoints:
        task = checkpoint.context.task
        entry = entries.setdefault(task.task, {"task": task.task, "fence": task.fence})
        entry["checkpoint"] = len(payloads)
        payloads.append(checkpoint.payload)
    header: Header = {"t": "beat", "n": n}
    if entries:
        header["tasks"] = list(entries.values())
    try:
        return [encode(header, payloads)]
    except ProtocolError:
        # Progress is not worth a lease: without it, the entries of 1 024 tasks fit.
        for entry in entries.values():
            entry.pop("progress", None)
        return [encode(header, payloads)]
