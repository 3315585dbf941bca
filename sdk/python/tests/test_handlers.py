"""Handlers: how they are called, what they may do, and how their attempts end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from onward import AsyncContext, Batch, Cancelled, Context, Fail, Handler, NewTask, Retry, RetryLater, Step, Worker
from onward.testing import run


@dataclass
class Image:
    url: str
    width: int = 100


@pytest.fixture
def app() -> Worker:
    return Worker(state={"unit": "px"})


def test_a_sync_handler_gets_a_dataclass_and_returns_json(app: Worker) -> None:
    @app.handler("resize")
    def resize(image: Image, ctx: Context) -> dict[str, Any]:
        return {"width": image.width, "unit": ctx.state["unit"]}

    assert run(app, "resize", {"url": "a.png", "width": 7}).value() == {"width": 7, "unit": "px"}


def test_an_async_handler_runs_on_the_loop(app: Worker) -> None:
    @app.handler("twice")
    async def twice(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    assert run(app, "twice", 4).value(int) == 8


def test_a_handler_may_take_nothing(app: Worker) -> None:
    @app.handler("ping")
    def ping() -> str:
        return "pong"

    assert run(app, "ping").value() == "pong"


def test_a_handler_may_be_a_class(app: Worker) -> None:
    class Greet(Handler):
        kind = "greet"
        retry = Retry(attempts=2)
        limit = 3

        def call(self, name: str, ctx: Context) -> str:
            return f"{ctx.attempt}: {name}"

    app.register(Greet())
    assert run(app, "greet", "Ada", attempt=2).value() == "2: Ada"
    assert app.call_of("greet")[0].header["limit"] == 3


def test_a_class_without_a_kind_is_refused(app: Worker) -> None:
    class Nameless(Handler):
        def call(self) -> None: ...

    with pytest.raises(TypeError, match="has no `kind`"):
        app.register(Nameless())


def test_a_payload_of_the_wrong_type_fails_for_good(app: Worker) -> None:
    @app.handler("resize")
    def resize(image: Image) -> None: ...

    outcome = run(app, "resize", {"width": 7})
    assert (outcome.outcome, outcome.fields["retry"]) == ("fail", False)
    assert "Image.url is missing" in outcome.fields["message"]


def test_an_error_keeps_class_message_and_traceback(app: Worker) -> None:
    @app.handler("boom")
    def boom() -> None:
        raise LookupError("no such file")

    fields = run(app, "boom").fields
    assert (fields["class"], fields["message"], "retry" in fields) == ("LookupError", "no such file", False)
    assert "in boom" in fields["details"]["traceback"]


def test_fail_and_retry_later_carry_their_terms(app: Worker) -> None:
    @app.handler("fail")
    def fail() -> None:
        raise Fail("no", details={"code": 7})

    @app.handler("later")
    def later() -> None:
        raise RetryLater("busy", after=2.5, counts=False)

    assert run(app, "fail").fields.items() >= {"retry": False, "details": {"code": 7}, "class": "Fail"}.items()
    assert run(app, "later").fields.items() >= {"retry_after_ms": 2500, "counts": False}.items()


def test_a_long_message_is_cut_at_a_character(app: Worker) -> None:
    @app.handler("long")
    def long() -> None:
        raise Fail("ä" * 8_000)

    message = run(app, "long").fields["message"]
    assert len(message.encode()) <= 8_192
    assert message.endswith("ä…")


def test_details_over_their_bound_are_omitted(app: Worker) -> None:
    @app.handler("long")
    def long() -> None:
        raise Fail("x", details="y" * 5_000)

    assert "more than 4096" in run(app, "long").fields["details"]["omitted"]


def test_a_result_over_the_bound_fails_for_good(app: Worker) -> None:
    @app.handler("big")
    def big() -> bytes:
        return bytes(1_048_577)

    assert run(app, "big").fields.items() >= {"class": "PayloadTooLarge", "retry": False}.items()


def test_a_result_without_json_form_fails_for_good(app: Worker) -> None:
    @app.handler("odd")
    def odd() -> object:
        return object()

    outcome = run(app, "odd")
    assert (outcome.outcome, outcome.fields["retry"]) == ("fail", False)


def test_progress_and_checkpoints_are_recorded(app: Worker) -> None:
    @app.handler("work")
    def work(_: Any, ctx: Context) -> Any:
        ctx.progress(0.25)
        ctx.progress(message="half", done=5, total=10)
        ctx.checkpoint({"at": 5})
        return ctx.last_checkpoint()

    outcome = run(app, "work", checkpoint={"at": 1})
    assert outcome.value() == {"at": 5}
    assert outcome.progress[-1] == {"fraction": 0.25, "message": "half", "done": 5, "total": 10}
    assert outcome.checkpoints == [{"at": 5}]


def test_progress_beyond_its_range_is_refused(app: Worker) -> None:
    @app.handler("work")
    def work(_: Any, ctx: Context) -> None:
        ctx.progress(1.5)

    assert "from 0 to 1" in run(app, "work").fields["message"]


def test_children_are_spawned_and_awaited(app: Worker) -> None:
    @app.handler("order")
    def order(_: Any, ctx: Context) -> Any:
        if ctx.is_resumed:
            return ctx.last_checkpoint()
        ctx.spawn("pack", {"item": "tea"}, key="tea", priority=200)
        return ctx.await_children("both", fail_fast=True)

    first = run(app, "order")
    assert (first.outcome, first.fields["on_failure"]) == ("children", "fail")
    assert first.spawned == [NewTask("pack", {"item": "tea"}, key="tea", priority=200)]
    assert run(app, "order", checkpoint="both").value() == "both"


def test_other_ends_name_their_terms(app: Worker) -> None:
    @app.handler("end")
    def end(how: str, ctx: Context) -> Any:
        ends = {"later": ctx.later(within=60), "move": ctx.move("slow"), "release": ctx.release()}
        return ends[how]

    assert run(app, "end", "later").fields["within_ms"] == 60_000
    assert run(app, "end", "move").fields["queue"] == "slow"
    assert run(app, "end", "release").fields["why"] == "given_up"


def test_a_submit_returns_the_id(app: Worker) -> None:
    @app.handler("submit")
    async def submit(_: Any, ctx: AsyncContext) -> str:
        return (await ctx.submit("mail", {"to": "ada"}, key="k", delay=1.5, retry=3)).task

    outcome = run(app, "submit")
    assert outcome.value() == "1"
    assert outcome.submitted[0].items() >= {"kind": "mail", "key": "k", "delay_ms": 1500}.items()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kind": ""}, "kind has 0 bytes"),
        ({"kind": "k" * 129}, "129 bytes"),
        ({"kind": "k", "priority": 256}, "priority is 256"),
        ({"kind": "k", "key": "x" * 513}, "513 bytes"),
        ({"kind": "k", "ttl": 0}, "ttl is 0"),
        ({"kind": "k", "tags": {str(n): "" for n in range(33)}}, "33 tags"),
        ({"kind": "k", "retry": 0}, "at least 1"),
    ],
)
def test_a_new_task_checks_its_fields(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        NewTask(**options).to_header()


def test_results_of_other_tasks_are_read(app: Worker) -> None:
    @app.handler("sum")
    def total(_: Any, ctx: Context) -> int:
        return sum(child.value(int) for child in ctx.children()) + ctx.result("9").value(int)

    pages = {
        None: ({"children": [{"task": "2", "kind": "k", "state": "completed", "payload": 0}], "next": "2"}, [b"1"]),
        "2": ({"children": [{"task": "3", "kind": "k", "state": "completed", "payload": 0}]}, [b"2"]),
    }

    def answer(header: dict[str, Any], _: list[bytes]) -> Any:
        if header["what"] == "result":
            return {"state": "completed", "payload": 0}, [b"4"]
        return pages[header.get("after")]

    assert run(app, "sum", answer=answer).value() == 7


def test_a_decision_chooses_among_its_choices(app: Worker) -> None:
    @app.decision("route", choices=["auto", "manager"])
    def route(step: Step) -> Any:
        return {1: "auto", 2: ["auto", "manager"], 3: None, 4: "boss"}[step.input]

    for number, chosen in [(1, ["auto"]), (2, ["auto", "manager"]), (3, [])]:
        assert run(app, "route", {"input": number, "results": {}}).value() == {"chosen": chosen}
    assert "chose 'boss'" in run(app, "route", {"input": 4}).fields["message"]


def test_step_results_are_read_by_name(app: Worker) -> None:
    @app.handler("ship")
    def ship(_: Any, ctx: Context) -> str:
        return ctx.step.result("image", Image).url

    results = {"image": {"url": "a.png"}}
    assert run(app, "ship", {"input": {}, "results": results}).value() == "a.png"
    assert "results of its ancestors: other" in run(app, "ship", {"results": {"other": 1}}).fields["message"]


def test_a_batch_continues_after_its_checkpoint(app: Worker) -> None:
    seen: list[int] = []

    @app.batch("rows", every=2)
    def rows(batch: Batch) -> None:
        batch.partial = batch.partial or 0
        for position in batch:
            seen.append(position)
            if position == 3:
                raise LookupError("row 3")
            batch.partial += position

    outcome = run(app, "rows", {"from": 0, "to": 6})
    assert outcome.checkpoints == [{"position": 2, "partial": 1}]
    seen.clear()
    resumed = run(app, "rows", {"cursor": {"from": 0, "to": 3}}, checkpoint={"position": 2, "partial": 1})
    assert (resumed.value(), seen) == (3, [2])


def test_an_async_batch_iterates_with_async_for(app: Worker) -> None:
    @app.batch("rows", every=2)
    async def rows(batch: Batch, ctx: AsyncContext) -> list[int]:
        return [position async for position in batch]

    outcome = run(app, "rows", {"from": 3, "to": 8})
    assert (outcome.value(), len(outcome.checkpoints)) == ([3, 4, 5, 6, 7], 2)


def test_a_batch_without_a_cursor_fails_for_good(app: Worker) -> None:
    @app.batch("rows")
    def rows(batch: Batch) -> None: ...

    assert "must be" in run(app, "rows", {"from": 5, "to": 2}).fields["message"]


def test_middleware_wraps_sync_and_async_handlers(app: Worker) -> None:
    lines: list[str] = []

    @app.middleware
    def outer(ctx: Context) -> Iterator[None]:
        lines.append("outer")
        ctx.local["db"] = "open"
        yield
        lines.append("done")

    @app.middleware
    def inner(ctx: Context) -> Iterator[None]:
        lines.append("inner")
        yield

    @app.handler("sync")
    def sync(_: Any, ctx: Context) -> str:
        return str(ctx.local["db"])

    @app.handler("async")
    async def not_sync(_: Any, ctx: AsyncContext) -> str:
        return str(ctx.local["db"])

    assert run(app, "sync").value() == run(app, "async").value() == "open"
    assert lines == ["outer", "inner", "done"] * 2


def test_middleware_sees_and_replaces_an_error(app: Worker) -> None:
    @app.middleware
    def busy(ctx: Context) -> Iterator[None]:
        try:
            yield
        except ConnectionError as error:
            raise RetryLater("the database is away", after=9) from error

    @app.handler("query")
    def query() -> None:
        raise ConnectionError("refused")

    assert run(app, "query").fields["retry_after_ms"] == 9_000


def test_middleware_that_swallows_an_error_does_not_hide_it(app: Worker) -> None:
    @app.middleware
    def silent(ctx: Context) -> Iterator[None]:
        try:
            yield
        except LookupError:
            pass

    @app.handler("query")
    def query() -> None:
        raise LookupError("gone")

    assert run(app, "query").fields["message"] == "gone"


def test_a_sync_handler_that_sleeps_is_stopped(app: Worker) -> None:
    @app.handler("wait")
    def wait(_: Any, ctx: Context) -> None:
        ctx.sleep(60)

    assert run(app, "wait", stop="cancelled").outcome == "cancelled"
    assert run(app, "wait", stop="preempted").outcome == "release"
    assert run(app, "wait", stop="lost").outcome == "lost"


def test_a_cancel_scope_cancels_what_is_awaited(app: Worker) -> None:
    cleaned = threading.Event()

    @app.handler("wait")
    async def wait(_: Any, ctx: AsyncContext) -> None:
        try:
            async with ctx.cancel_scope():
                await asyncio.sleep(60)
        except Cancelled:
            await asyncio.sleep(0)  # the task itself is not cancelled, so cleanup may await
            cleaned.set()
            raise

    assert run(app, "wait", stop="cancelled", stop_after=0.05).outcome == "cancelled"
    assert cleaned.is_set()


def test_a_stop_after_the_cancel_scope_does_not_cancel(app: Worker) -> None:
    @app.handler("wait")
    async def wait(_: Any, ctx: AsyncContext) -> bool:
        async with ctx.cancel_scope():
            pass
        return await ctx.wait(60)

    assert run(app, "wait", stop="cancelled", stop_after=0.05).value() is True


def test_callbacks_run_once_when_the_attempt_should_stop(app: Worker) -> None:
    calls: list[int] = []

    @app.handler("wait")
    def wait(_: Any, ctx: Context) -> None:
        ctx.on_cancel(lambda: calls.append(1))
        ctx.wait(60)
        ctx.on_cancel(lambda: calls.append(2))

    run(app, "wait", stop="cancelled")
    assert calls == [1, 2]


def test_a_kind_has_one_handler(app: Worker) -> None:
    app.handler("a")(lambda: None)
    with pytest.raises(ValueError, match="has a handler already"):
        app.handler("a")(lambda: None)


@pytest.mark.parametrize("options", [{"limit": 0}, {"timeout": 0}, {"retry": 0}, {"heartbeat": -1}])
def test_options_out_of_range_are_refused(app: Worker, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least|from 1"):
        app.handler("a", **options)(lambda: None)


def test_an_asking_handler_needs_an_answer_in_tests(app: Worker) -> None:
    @app.handler("ask")
    def ask(_: Any, ctx: Context) -> None:
        ctx.result("1")

    assert "answer" in run(app, "ask").fields["message"]
