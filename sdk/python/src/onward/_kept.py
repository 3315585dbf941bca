"""The code of orchestrations that a worker keeps between turns, so that it gets only new events."""

from __future__ import annotations

import threading
from collections import OrderedDict

from onward._replay import Replay

KEPT = 1_000
"""The number of orchestrations of a kind that are kept. The one with the oldest turn goes first."""


class KeptReplays:
    """Orchestrations of one kind, each after the turn that this worker ended last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._replays: OrderedDict[str, tuple[int, Replay]] = OrderedDict()

    def take(self, task: str, generation: int, length: int) -> Replay | None:
        """Removes an orchestration. Returns it if it is after exactly this history."""
        with self._lock:
            kept = self._replays.pop(task, None)
        if kept is None:
            return None
        if kept[0] == generation and kept[1].length == length:
            return kept[1]
        kept[1].close()
        return None

    def keep(self, task: str, generation: int, replay: Replay) -> None:
        """Keeps an orchestration that waits."""
        with self._lock:
            old = self._replays.pop(task, None)
            self._replays[task] = (generation, replay)
            if len(self._replays) > KEPT:
                _, old = self._replays.popitem(last=False)
        if old is not None:
            old[1].close()

    def clear(self) -> None:
        """Drops every orchestration."""
        with self._lock:
            kept, self._replays = self._replays, OrderedDict()
        for _, replay in kept.values():
            replay.close()
