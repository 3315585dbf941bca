"""Orchestrations of a worker on the real gateway, also while processes are killed."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from gateway_process import TESTS, Gateway, wait_for

from onward import Nondeterminism, OrchestrationContext, Worker
from onward.testing import check_history

ORDERS = 40


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path, TESTS / "order_worker.py")
    yield gateway
    gateway.end()


def start(gateway: Gateway, kind: str, payload: str) -> str:
    """Starts an orchestration and returns its id."""
    return gateway.onward("orchestration", "start", kind, "--payload", payload).split()[1]


def show(gateway: Gateway, task: str) -> dict[str, object]:
    """Returns a task."""
    shown: dict[str, object] = json.loads(gateway.onward("task", "show", task, "--json"))
    return shown


def has_ended(gateway: Gateway, task: str) -> bool:
    return show(gateway, task)["state"] not in ("blocked", "scheduled", "waiting", "running")


def ended(gateway: Gateway, task: str) -> dict[str, object]:
    """Waits for the end of a task and returns it."""
    wait_for(lambda: has_ended(gateway, task), f"task {task} ends; {gateway.log()[-2000:]}")
    return show(gateway, task)


def test_two_tasks_a_timer_and_a_signal_lead_to_the_result(gateway: Gateway) -> None:
    gateway.start()
    task = start(gateway, "order", '{"number":7}')
    gateway.onward("orchestration", "signal", task, "paid", "1999")
    shown = ended(gateway, task)
    assert (shown["state"], shown["result"]) == ("completed", '"parcel 70 for 1999"'), shown


def test_a_fault_of_the_code_makes_a_dead_letter_that_names_it(gateway: Gateway) -> None:
    gateway.start()
    shown = ended(gateway, start(gateway, "stuck", "null"))
    assert shown["state"] == "dead" and "ValueError: a fault of the code" in json.dumps(shown)


def test_a_child_that_loses_is_cancelled(gateway: Gateway) -> None:
    gateway.start()
    task = start(gateway, "parent", "3")
    wait_for(lambda: gateway.count("--kind", "order") == 1, "the child begins")
    gateway.onward("orchestration", "signal", task, "stop", "null")
    assert ended(gateway, task)["result"] == "1"
    wait_for(lambda: gateway.count("--kind", "order", "--state", "cancelled") == 1, "the child is cancelled")


def test_a_cancelled_orchestration_cancels_its_task(gateway: Gateway) -> None:
    gateway.start()
    task = start(gateway, "order", '{"number":7}')
    wait_for(lambda: gateway.count("--kind", "reserve", "--state", "completed") == 1, "it waits for its signal")
    gateway.onward("orchestration", "cancel", task)
    assert ended(gateway, task)["state"] == "cancelled"


def test_a_worker_that_has_kept_the_code_gets_only_new_events(gateway: Gateway) -> None:
    gateway.start()
    assert ended(gateway, start(gateway, "begins", "5"))["result"] == "1"


def test_another_worker_takes_over_a_history_that_needs_several_payloads(gateway: Gateway) -> None:
    gateway.start()
    task = start(gateway, "large", "null")
    wait_for(lambda: gateway.count("--kind", "lines", "--state", "completed") == 4, "the results")
    gateway.kill_worker()
    gateway.worker_pid()
    gateway.onward("orchestration", "signal", task, "go", "null")
    assert ended(gateway, task)["result"] == "1600000"


def test_an_exported_history_is_replayed_and_other_code_differs_from_it(gateway: Gateway) -> None:
    gateway.start()
    task = start(gateway, "begins", "1")
    ended(gateway, task)
    file = gateway.folder / "history.json"
    gateway.onward("orchestration", "export", task, "--output", str(file))

    async def same(ctx: OrchestrationContext, steps: int) -> None:
        await ctx.task("reserve", {"number": 0})

    async def other(ctx: OrchestrationContext, steps: int) -> None:
        await ctx.task("book")

    for code, differs in ((same, False), (other, True)):
        app = Worker()
        app.orchestration("begins")(code)
        with pytest.raises(Nondeterminism) if differs else contextlib.nullcontext():
            check_history(app, file)


def run_orders(gateway: Gateway) -> list[str]:
    """Starts orders and their payments."""
    orders = [start(gateway, "order", json.dumps({"number": number})) for number in range(ORDERS)]
    for task in orders:
        gateway.onward("orchestration", "signal", task, "paid", "5")
    return orders


def has_shipped(gateway: Gateway, goal: int) -> bool:
    return gateway.count("--kind", "order", "--state", "completed") >= goal


def assert_each_order_once(gateway: Gateway, orders: list[str]) -> None:
    wait_for(lambda: has_shipped(gateway, ORDERS), f"all orders complete; {gateway.log()[-3000:]}", 120)
    for number, task in enumerate(orders):
        assert show(gateway, task)["result"] == f'"parcel {number * 10} for 5"'
    # Each order submitted each of its tasks once, and each of them completed once.
    assert gateway.count("--kind", "reserve") == gateway.count("--kind", "ship") == ORDERS
    events = [json.loads(line) for line in gateway.onward("events", "--json").splitlines()]
    times = Counter(event["task"] for event in events if event["change"] == "completed")
    assert len(times) == 3 * ORDERS and set(times.values()) == {1}


def test_killed_workers_lose_no_order_and_do_nothing_twice(gateway: Gateway) -> None:
    gateway.start()
    orders = run_orders(gateway)
    for goal in (1, 10, 20):
        wait_for(partial(has_shipped, gateway, goal), f"{goal} orders complete; {gateway.log()[-3000:]}")
        gateway.kill_worker()
    assert_each_order_once(gateway, orders)


def test_killed_gateways_lose_no_order_and_do_nothing_twice(gateway: Gateway) -> None:
    gateway.start()
    orders = run_orders(gateway)
    for goal in (1, 10, 20):
        wait_for(partial(has_shipped, gateway, goal), f"{goal} orders complete; {gateway.log()[-3000:]}")
        gateway.kill()
        gateway.start()
    assert_each_order_once(gateway, orders)
