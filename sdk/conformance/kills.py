#!/usr/bin/env python3
"""Runs workflows whose steps are in workers of several languages, while processes are killed.

    python3 kills.py [--rounds N] [--faults N] [--carrier http] --worker "python steps_worker.py" --worker "node …"
    cargo xtask soak languages-kill

Each round has a store, two gateways, two runners of workflows, and two workers of each `--worker`.
Runs of two templates start without a pause. Meanwhile faults happen to random processes: kills, pauses
beyond the lease, stops under load, a task that kills its worker, and a rolling deploy. Then each run
must have completed with the right result, and each of its tasks once.

The last line of each round and of the command is `attempted=… acknowledged=… lost=… duplicated=…
recovered=… seed=…`. The exit code is 1 if something was lost or duplicated, or a stopped process failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from fleet import LEASE_SECONDS, Failed, Fleet, Member, wait_for

TEMPLATES = Path(__file__).parent / "kills"
EXPONENTS = {("linear", "1"): 16, ("linear", "2"): 12, ("diamond", "1"): 8, ("diamond", "2"): 10}
"""The result of a template is its input to this power."""

STEPS = {("linear", "1"): 4, ("linear", "2"): 3, ("diamond", "1"): 4, ("diamond", "2"): 4}
DEATHS = 3
"""The number of workers that a task may kill before it is a dead letter."""


@dataclass
class Counts:
    """The counts of a round, or of all."""

    attempted: int = 0
    acknowledged: int = 0
    lost: int = 0
    duplicated: int = 0
    recovered: int = 0
    by: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Adds the counts of a round."""
        for name in ("attempted", "acknowledged", "lost", "duplicated", "recovered"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.by += other.by

    def __str__(self) -> str:
        return (
            f"attempted={self.attempted} acknowledged={self.acknowledged} lost={self.lost}"
            f" duplicated={self.duplicated} recovered={self.recovered}"
        )


@dataclass(frozen=True)
class Run:
    """A run that was acknowledged."""

    task: int
    template: tuple[str, str]
    number: int


class Starter:
    """Starts runs, one after the other, on a thread of its own until `stop`."""

    PACE = 0.1
    """The pause after each start, in seconds. Runs must still start when the last fault happens."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.version = "1"
        self.attempted = 0
        self.runs: list[Run] = []
        self.error: Exception | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Stops. Raises the error of a start."""
        self._stopped.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            while not self._stopped.wait(self.PACE):
                self._start("linear" if self.attempted % 2 else "diamond", self.version)
        except Exception as error:
            self.error = error

    def _start(self, name: str, version: str) -> None:
        number = 2 + self.attempted % 5
        self.attempted += 1
        arguments = ["--input", f"number={number}", "--key", str(self.attempted), "--json"]
        started = json.loads(self._fleet.onward("workflow", "start", f"{name}@{version}", *arguments))
        self.runs.append(Run(started["id"], (name, version), number))


class Round:
    """One round: a store, its processes, and their faults."""

    def __init__(self, fleet: Fleet, chance: random.Random, faults: int) -> None:
        self._fleet = fleet
        self._chance = chance
        self._faults = faults

    def play(self) -> Counts:
        """Plays the round and returns its counts. Raises Failed with the end of the log."""
        try:
            self._put("1")
            self._fleet.start()
            starter = Starter(self._fleet)
            try:
                self._disturb(starter)
            finally:
                starter.stop()
            return self._check(starter)
        except Failed as error:
            raise Failed(f"{error}\n{self._fleet.log()}") from error
        finally:
            self._fleet.end()

    def _put(self, version: str) -> None:
        for name in ("linear", "diamond"):
            self._fleet.onward("workflow", "put", str(TEMPLATES / f"{name}-{version}.yaml"))

    def _disturb(self, starter: Starter) -> None:
        """Lets the faults happen, each after some tasks more have completed, and the deploy half-way."""
        kinds = [self._kill, self._kill, self._pause, self._stop, self._poison]
        for number in range(self._faults):
            self._wait_for_completed(self._completed() + self._chance.randint(5, 25))
            if number == self._faults // 2:
                self._deploy(starter)
            else:
                self._chance.choice(kinds)()

    def _wait_for_completed(self, goal: int) -> None:
        wait_for(lambda: self._completed() >= goal, f"{goal} tasks complete")

    def _completed(self) -> int:
        return self._fleet.count("--state", "completed")

    def _anyone(self) -> Member:
        fleet = self._fleet
        return self._chance.choice(self._chance.choice([fleet.workers, fleet.workers, fleet.gateways, fleet.runners]))

    def _kill(self) -> None:
        member = self._anyone()
        member.kill()
        member.start()

    def _pause(self) -> None:
        self._anyone().pause(2 * LEASE_SECONDS)

    def _stop(self) -> None:
        member = self._anyone()
        member.stop()
        member.start()

    def _poison(self) -> None:
        """Submits a task that kills each worker which runs it, until it is a dead letter."""
        task = json.loads(self._fleet.onward("submit", "--kind", "poison", "--json", "null"))["id"]
        wait_for(lambda: self._is_dead(task), f"the poison {task} is dead")
        self._fleet.revive()
        attempts = json.loads(self._fleet.onward("task", "show", str(task), "--json"))["attempts"]
        if attempts != DEATHS:
            raise Failed(f"the poison had {attempts} attempts, not {DEATHS}")

    def _is_dead(self, task: int) -> bool:
        self._fleet.revive()
        return bool(json.loads(self._fleet.onward("task", "show", str(task), "--json"))["state"] == "dead")

    def _deploy(self, starter: Starter) -> None:
        """Starts the new version of the workers beside the old one, which is stopped under load."""
        old = self._fleet.workers
        self._fleet.workers = old + self._fleet.new_workers("2")
        self._put("2")
        starter.version = "2"
        for worker in old:
            worker.stop()
            self._fleet.workers.remove(worker)

    def _check(self, starter: Starter) -> Counts:
        """Waits for the end of each run, and compares results and events with what must be."""
        fleet, runs = self._fleet, starter.runs
        counts = Counts(attempted=starter.attempted, acknowledged=len(runs))
        wait_for(lambda: self._completed_runs() >= len(runs), "every run completes")
        for run in runs:
            shown = json.loads(fleet.onward("task", "show", str(run.task), "--json"))
            result = json.loads(shown["result"]) if shown["state"] == "completed" else {}
            counts.lost += result.get("number") != run.number ** EXPONENTS[run.template]
            counts.by.update(result.get("by", []))
        self._check_events(counts, sum(1 + STEPS[run.template] for run in runs))
        return counts

    def _completed_runs(self) -> int:
        kinds = ["run:linear", "run:diamond"]
        return sum(self._fleet.count("--kind", kind, "--state", "completed") for kind in kinds)

    def _check_events(self, counts: Counts, tasks: int) -> None:
        events = [json.loads(line) for line in self._fleet.onward("events", "--json").splitlines()]
        completed = Counter(event["task"] for event in events if event["change"] == "completed")
        counts.duplicated = completed.total() - len(completed) + max(0, len(completed) - tasks)
        counts.recovered = sum(event["change"] in ("retrying", "lease_lost", "released") for event in events)


def main() -> int:
    """Plays the rounds, prints their counts, and returns the exit code."""
    arguments = _arguments()
    commands = [shlex.split(worker) for worker in arguments.worker]
    total = Counts()
    for number in range(arguments.rounds):
        seed = arguments.seed + number
        try:
            counts = Round(Fleet(commands, arguments.carrier), random.Random(seed), arguments.faults).play()
        except Failed as error:
            print(f"FAIL round={number + 1} seed={seed}: {error}")
            return 1
        total.add(counts)
        steps = ", ".join(f"{name}: {count}" for name, count in sorted(counts.by.items()))
        print(f"round={number + 1} {counts} seed={seed}; steps by {steps}", flush=True)
    print(f"{total} seed={arguments.seed}")
    return 1 if total.lost or total.duplicated else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs workflows in workers of several languages under faults.")
    rounds = int(os.environ.get("ONWARD_ROUNDS", "1"))
    parser.add_argument("--rounds", type=int, default=rounds, help="the number of stores (ONWARD_ROUNDS)")
    parser.add_argument("--faults", type=int, default=9, help="the number of faults of a round")
    seed = int(os.environ.get("ONWARD_SEED") or random.SystemRandom().randrange(2**32))
    parser.add_argument("--seed", type=int, default=seed, help="chooses the faults (ONWARD_SEED)")
    parser.add_argument("--carrier", choices=["ipc", "http"], default="ipc", help="how workers reach a gateway")
    parser.add_argument("--worker", action="append", required=True, help="a command that starts a worker of steps")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
