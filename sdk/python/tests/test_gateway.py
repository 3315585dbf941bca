"""The worker against the real gateway: results, stops, and processes that are killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from gateway_process import PROJECT, TESTS, Gateway, wait_for

EXAMPLES = PROJECT / "sdk/python/examples"
TASKS = 400

STOPPED = 0
"""The exit code of `onward work` after SIGTERM, which is no failure."""


@pytest.fixture
def gateway(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path, request.param)
    yield gateway
    gateway.end()


COUNT = pytest.mark.parametrize("gateway", [TESTS / "count_worker.py"], indirect=True, ids=["count"])


def submit(gateway: Gateway, count: int) -> None:
    gateway.onward("submit", "--kind", "count", "--lines", stdin="".join(f"{n}\n" for n in range(count)))


def completed(gateway: Gateway) -> int:
    return gateway.count("--state", "completed")


def has_completed(gateway: Gateway, goal: int) -> bool:
    return completed(gateway) >= goal


def assert_each_completed_once(gateway: Gateway, count: int) -> None:
    wait_for(lambda: completed(gateway) == count, f"{count} tasks complete; {gateway.log()[-2000:]}", 120)
    events = [json.loads(line) for line in gateway.onward("events", "--json").splitlines()]
    times = Counter(event["task"] for event in events if event["change"] == "completed")
    assert len(times) == count
    assert set(times.values()) == {1}


@COUNT
def test_a_task_runs_and_its_result_is_kept(gateway: Gateway) -> None:
    gateway.start()
    assert gateway.onward("submit", "--kind", "count", "--wait", "41").strip() == "41"
    assert gateway.stop() == STOPPED


@COUNT
def test_the_log_of_a_failure_has_the_attempt_and_the_traceback(gateway: Gateway) -> None:
    gateway.start()
    gateway.onward("submit", "--kind", "crash", "--wait", check=False)
    assert gateway.stop() == STOPPED
    assert "attempt 1 of task 1 of kind `crash` failed" in gateway.log()
    assert 'raise LookupError("no such row")' in gateway.log()


@COUNT
def test_killed_workers_lose_nothing_and_complete_nothing_twice(gateway: Gateway) -> None:
    submit(gateway, TASKS)
    gateway.start()
    for goal in range(40, TASKS - 100, 80):
        wait_for(partial(has_completed, gateway, goal), f"{goal} tasks complete")
        gateway.kill_worker()
    assert_each_completed_once(gateway, TASKS)


@COUNT
def test_killed_gateways_lose_nothing_and_complete_nothing_twice(gateway: Gateway) -> None:
    submit(gateway, TASKS)
    gateway.start()
    for goal in range(40, TASKS - 100, 80):
        wait_for(partial(has_completed, gateway, goal), f"{goal} tasks complete")
        worker = gateway.worker_pid()
        gateway.pid_file.unlink()
        gateway.kill()
        wait_for(partial(is_gone, worker), "the child of a killed gateway exits", 10)
        gateway.start()
    assert_each_completed_once(gateway, TASKS)


def is_gone(pid: int) -> bool:
    """Returns True if a process has ended, collected or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@COUNT
def test_a_worker_that_is_paused_beyond_its_lease_completes_nothing_twice(gateway: Gateway) -> None:
    submit(gateway, TASKS)
    gateway.start("--lease", "1s")
    wait_for(lambda: completed(gateway) >= 40, "40 tasks complete")
    pid = gateway.worker_pid()
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: gateway.count("--state", "running") == 0, "the tasks of the paused worker are given up")
    os.kill(pid, signal.SIGCONT)
    assert_each_completed_once(gateway, TASKS)


@COUNT
def test_workers_that_connect_survive_killed_gateways(gateway: Gateway) -> None:
    submit(gateway, TASKS)
    gateway.listen()
    worker = gateway.start_worker()
    for goal in range(40, TASKS - 100, 80):
        wait_for(partial(has_completed, gateway, goal), f"{goal} tasks complete")
        gateway.kill()
        gateway.listen()
    assert_each_completed_once(gateway, TASKS)
    assert worker.poll() is None, gateway.log()
    worker.terminate()
    assert worker.wait(20) == 0


@COUNT
def test_workers_that_connect_may_be_killed(gateway: Gateway) -> None:
    submit(gateway, TASKS)
    gateway.listen()
    for goal in range(40, TASKS - 100, 80):
        worker = gateway.start_worker()
        gateway.start_worker()
        wait_for(partial(has_completed, gateway, goal), f"{goal} tasks complete")
        worker.kill()
        worker.wait()
    assert_each_completed_once(gateway, TASKS)


@COUNT
def test_a_cancelled_task_stops_its_handler(gateway: Gateway) -> None:
    gateway.start()
    gateway.onward("submit", "--kind", "hold")
    wait_for((gateway.folder / "hold").exists, "the handler begins")
    gateway.onward("task", "cancel", "1")
    wait_for(lambda: gateway.count("--state", "cancelled") == 1, "the task is cancelled")
    assert gateway.stop() == STOPPED


@COUNT
def test_a_stopped_gateway_drains_its_worker(gateway: Gateway) -> None:
    submit(gateway, 100)
    gateway.start()
    wait_for(lambda: completed(gateway) >= 10, "10 tasks complete")
    assert gateway.stop() == STOPPED
    assert gateway.count("--state", "running") == 0
    assert gateway.count("--state", "failed") == 0


@pytest.mark.parametrize("gateway", [EXAMPLES / "checksums.py"], indirect=True, ids=["checksums"])
def test_the_example_of_checksums(gateway: Gateway) -> None:
    files = gateway.folder / "files"
    files.mkdir()
    (files / "a").write_text("a\n")
    (files / "b").write_text("b\n")
    gateway.start()
    out = gateway.onward("submit", "--kind", "checksums", "--wait", json.dumps({"folder": str(files)}))
    assert json.loads(out)[str(files / "a")].startswith("87428fc522803d31")


@pytest.mark.parametrize("gateway", [EXAMPLES / "order.py"], indirect=True, ids=["order"])
def test_the_example_of_an_order_is_undone_when_it_fails(gateway: Gateway) -> None:
    gateway.start()
    template = str(EXAMPLES / "order.yaml")
    done = gateway.onward("run", template, "--input", "order=7", "--input", "amount=40")
    assert json.loads(done) == {"parcel": "parcel-7"}
    gateway.onward("run", template, "--input", "order=8", "--input", "amount=-40", check=False)
    with sqlite3.connect(gateway.folder / "ledger.db") as ledger:
        effects = [row[0] for row in ledger.execute("SELECT what FROM effect")]
    ledger.close()
    assert effects == ["reserved", "charged", "shipped", "reserved", "released"]
