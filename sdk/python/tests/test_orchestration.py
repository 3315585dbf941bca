"""Orchestrations without a gateway: replay, guards, and differences from the history."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from typing import Any

import pytest
from gateway_process import PROJECT

from onward import Fail, Nondeterminism, NotDeterministic, OrchestrationContext, TaskFailed, Worker
from onward._messages import TurnMessage
from onward._turn import read_events, text_of
from onward.errors import Cancelled
from onward.orchestration import Code
from onward.testing import OrchestrationTest, check_history


def bench(code: Any, payload: Any = None) -> OrchestrationTest:
    app = Worker()
    app.orchestration("order")(code)
    return OrchestrationTest(app, "order", payload)


async def order(ctx: OrchestrationContext, order: dict[str, str]) -> str:
    shelf = await ctx.task("reserve", {"item": order["item"]})
    await ctx.sleep(60)
    cents = await ctx.wait_signal("paid")
    await ctx.task("ship", {"shelf": shelf})
    return f"{cents} cents for shelf {shelf}"


def test_tasks_timers_and_signals_lead_to_the_result() -> None:
    test = bench(order, {"item": "tea"})
    assert test.payload_of("reserve") == {"item": "tea"}
    test.complete("reserve", 4)
    test.advance(60)
    assert test.waits == ["paid"]
    test.signal("paid", 1999)
    test.complete("ship")
    assert test.result == "1999 cents for shelf 4"


def test_a_signal_that_comes_early_is_kept() -> None:
    test = bench(order, {"item": "tea"})
    test.signal("paid", 5)
    test.complete("reserve", 1)
    test.advance(60)
    assert [task["kind"] for task in test.tasks.values()] == ["ship"]


def test_a_failed_task_is_an_exception() -> None:
    async def code(ctx: OrchestrationContext) -> str:
        try:
            await ctx.task("charge")
        except TaskFailed as error:
            return f"{error.state}: {error.error}"
        return "charged"

    test = bench(code)
    test.fail("charge", "no money", state="dead")
    assert test.result == "dead: no money"


def test_an_exception_that_the_code_lets_pass_fails_the_orchestration() -> None:
    async def code(ctx: OrchestrationContext) -> None:
        await ctx.task("charge")

    test = bench(code)
    test.fail("charge", "no money")
    assert (test.state, test.error) == ("failed", "TaskFailed: the task `charge` ended as failed: no money")


def test_a_signal_that_does_not_come_in_time_is_a_timeout() -> None:
    async def code(ctx: OrchestrationContext) -> str:
        try:
            return str(await ctx.wait_signal("paid", timeout=10))
        except TimeoutError:
            return "late"

    test = bench(code)
    test.advance(10)
    assert test.result == "late"
    test = bench(code)
    test.signal("paid", 7)
    assert (test.result, test.timers) == ("7", {})


def test_gather_returns_the_results_in_the_order_of_the_calls() -> None:
    async def code(ctx: OrchestrationContext) -> Any:
        return await ctx.gather(ctx.task("a"), ctx.task("b"), ctx.sleep(5))

    test = bench(code)
    test.complete("b", 2)
    test.advance(5)
    test.complete("a", 1)
    assert test.result == [1, 2, None]


def test_an_error_in_gather_cancels_the_others() -> None:
    async def code(ctx: OrchestrationContext) -> None:
        await ctx.gather(ctx.task("a"), ctx.task("b"))

    test = bench(code)
    test.fail("a", "no")
    assert (test.state, test.tasks) == ("failed", {})
    assert test.history[-1] == {"e": "operation_cancelled", "operation": 2}


def test_coroutines_run_beside_each_other() -> None:
    async def code(ctx: OrchestrationContext) -> Any:
        async def two(first: str, second: str) -> Any:
            return [await ctx.task(first), await ctx.task(second)]

        return await ctx.gather(two("a", "b"), two("c", "d"))

    test = bench(code)
    for kind in ("c", "a", "b", "d"):
        test.complete(kind, kind)
    assert test.result == [["a", "b"], ["c", "d"]]


def test_the_first_wins_and_the_others_are_cancelled() -> None:
    async def code(ctx: OrchestrationContext) -> Any:
        return await ctx.first(ctx.task("slow"), ctx.sleep(1))

    test = bench(code)
    test.advance(1)
    assert (test.result, test.tasks) == ([1, None], {})


def test_cancellation_is_raised_where_the_code_awaits() -> None:
    async def code(ctx: OrchestrationContext) -> None:
        try:
            await ctx.task("charge")
        except Cancelled:
            await ctx.task("refund")
            raise

    test = bench(code)
    test.cancel()
    assert [task["kind"] for task in test.tasks.values()] == ["refund"]
    test.complete("refund")
    assert test.state == "cancelled"


def test_continue_as_new_begins_again_and_keeps_signals() -> None:
    async def code(ctx: OrchestrationContext, count: int) -> int:
        await ctx.wait_signal("next")
        if count == 2:
            return count
        return ctx.continue_as_new(count + 1)

    test = bench(code, 0)
    test.signal("next")
    assert (test.generation, len(test.history)) == (1, 1)
    test.signal("next")
    test.signal("next")
    assert test.result == 2


def test_time_and_random_numbers_are_those_of_the_first_run() -> None:
    seen: list[Any] = []

    async def code(ctx: OrchestrationContext) -> None:
        seen.append((ctx.now(), ctx.random(), ctx.uuid()))
        await ctx.sleep(1)

    test = bench(code)
    test.advance(1)
    assert len(seen) == 2 and seen[0] == seen[1]
    assert 0 <= seen[0][1] < 1 and seen[0][2].version == 4


async def sleeps(ctx: OrchestrationContext) -> None:
    time.sleep(0)


async def connects(ctx: OrchestrationContext) -> None:
    socket.socket()


async def starts_a_thread(ctx: OrchestrationContext) -> None:
    threading.Thread(target=print).start()


@pytest.mark.parametrize("code", [sleeps, connects, starts_a_thread])
def test_what_a_replay_would_do_again_is_refused(code: Any) -> None:
    with pytest.raises(NotDeterministic, match="move it into a task"):
        bench(code)


def test_code_outside_of_orchestrations_is_not_guarded() -> None:
    with pytest.raises(NotDeterministic):
        bench(sleeps)
    time.sleep(0)
    socket.socket().close()


def test_a_sleep_of_asyncio_is_refused() -> None:
    async def code(ctx: OrchestrationContext) -> None:
        await asyncio.sleep(1)

    with pytest.raises(RuntimeError, match="no running event loop"):
        bench(code)


def test_awaiting_something_else_is_refused() -> None:
    class Other:
        def __await__(self) -> Any:
            yield "else"

    async def code(ctx: OrchestrationContext) -> None:
        await Other()

    with pytest.raises(NotDeterministic, match="awaits a str"):
        bench(code)


def replay(test: OrchestrationTest, code: Any) -> None:
    """Replays the history of a test with other code."""
    app = Worker()
    app.orchestration("order")(code)
    check_history(app, {"kind": "order", "payload": text_of(b'{"item":"tea"}'), "events": test.history})


def test_another_task_than_in_the_history_is_named_with_both_and_the_cause() -> None:
    test = bench(order, {"item": "tea"})

    async def changed(ctx: OrchestrationContext) -> None:
        await ctx.task("book")

    with pytest.raises(Nondeterminism) as caught:
        replay(test, changed)
    text = str(caught.value)
    assert caught.value.position == 1
    assert "`reserve`" in text and "`book`" in text and "the likely cause is a renamed task" in text


def test_a_timer_that_depends_on_a_clock_is_named() -> None:
    async def code(ctx: OrchestrationContext) -> None:
        await ctx.sleep(10)

    test = bench(code)

    async def changed(ctx: OrchestrationContext) -> None:
        await ctx.sleep(11)

    with pytest.raises(Nondeterminism, match="changed duration"):
        replay(test, changed)


def test_code_that_ends_before_its_history_is_a_difference() -> None:
    test = bench(order, {"item": "tea"})

    async def changed(ctx: OrchestrationContext) -> None:
        return

    with pytest.raises(Nondeterminism, match="its end"):
        replay(test, changed)


def test_a_call_beyond_the_history_is_a_difference() -> None:
    test = bench(order, {"item": "tea"})

    async def changed(ctx: OrchestrationContext) -> None:
        await ctx.gather(ctx.task("reserve"), ctx.task("more"))

    with pytest.raises(Nondeterminism, match="the history ends"):
        replay(test, changed)


def test_a_payload_of_another_type_fails_with_its_path() -> None:
    async def code(ctx: OrchestrationContext, count: int) -> int:
        return count

    test = bench(code, "many")
    assert test.state == "failed" and test.error.startswith("Fail: ")


def test_fail_ends_the_orchestration_with_its_message() -> None:
    async def code(ctx: OrchestrationContext) -> None:
        raise Fail("nobody paid")

    assert bench(code).error == "Fail: nobody paid"


ALL_VECTORS = json.loads((PROJECT / "crates/onward-protocol/vectors.json").read_text())
VECTORS, KEPT = ALL_VECTORS["turns"], ALL_VECTORS["kept_turns"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_turns_have_the_replies_of_the_vectors(vector: dict[str, Any]) -> None:
    async def code(ctx: OrchestrationContext, count: int) -> Any:
        await ctx.task("charge", count)
        await ctx.sleep(60)
        return await ctx.wait_signal("paid")

    replay = Code("order", code).begin(b"7", "1")
    events = read_events(json.dumps(vector["events"]).encode())
    if "reply" in vector:
        assert json.loads(replay.run(events, vector["position"]).encode()) == vector["reply"]
    elif "end" in vector:
        assert replay.run(events, vector["position"]).end["do"] == vector["end"]
    else:
        with pytest.raises(Nondeterminism):
            replay.run(events, vector["position"])


@pytest.mark.parametrize("vector", KEPT, ids=lambda vector: vector["name"])
def test_kept_code_has_the_replies_of_the_vectors(vector: dict[str, Any]) -> None:
    async def code(ctx: OrchestrationContext, count: int) -> Any:
        await ctx.task("charge", count)
        await ctx.sleep(60)

    kept = Code("order", code)

    def turn(events: Any, position: int, new_only: bool) -> Any:
        message = TurnMessage([json.dumps(events).encode()], position, 0, new_only)
        reply = kept.turn(message, b"7", "1", keeps=True)
        return reply and json.loads(reply.encode())

    assert turn(vector["events"], vector["position"], False) == vector["first"]
    assert turn(vector["new"], vector["new_position"], True) == vector["reply"]


def test_a_function_that_is_not_async_is_refused() -> None:
    with pytest.raises(TypeError, match="async def"):
        Worker().orchestration("k")(lambda ctx: None)
