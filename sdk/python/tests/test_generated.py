"""The code of `onward workflow generate`: its types in mypy, and its handlers in runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from gateway_process import PROJECT, TESTS, Gateway, program

TEMPLATES = PROJECT / "crates/onward-cli/tests/it/generated_code"

ORDERS = """
import os
from pathlib import Path

from onward import AsyncContext, Context, Worker
from orders import (
    OrdersInput,
    OrdersResult,
    ParcelsShip,
    PricesTotal,
    StockRelease,
    StockReserve,
    StockReserveResult,
    register,
)

ORDER: OrdersInput = {"order": "A-17", "lines": [{"article": "tea", "quantity": 2}], "type": "by-phone"}


def reserve(task: StockReserve, ctx: Context) -> StockReserveResult:
    return {"id": task["index"] + 40}


async def ship(task: ParcelsShip, ctx: AsyncContext) -> OrdersResult:
    ids = [item["id"] for item in task["results"].get("reserve", []) if item is not None]
    return {"parcel": f"{task['input']['order']} {ids} {task['results'].get('price')}"}


def total(lines: PricesTotal) -> float:
    return float(sum(line["quantity"] for line in lines))


def release(task: StockRelease) -> None:
    return None


app = Worker()
register(
    app,
    {"stock.reserve": reserve, "parcels.ship": ship, "prices.total": total, "stock.release": release},
)
if __name__ == "__main__":
    Path(os.environ["PID_FILE"]).write_text(str(os.getpid()))
    app.run()
"""

HOSTILE = """
from hostile import ImportHandlers, ImportInput, N1st, N1stResult, StringResult, StringType, register
from onward import Worker

GIVEN: ImportInput = {
    "class": "c",
    "__proto__": 1,
    "a-b": {"from": "text"},
    "a b": {"from": 2},
    "": True,
    "äpfel \\u202e\\n\\"'\\\\": None,
    "__private": 1.5,
    "constructor": 'a"b',
    "items": {"keys": "k"},
    "types": {"str": "s", "list": ["l"], "text": "t"},
    "union": ["x", "y"],
    "const": "only",
}


def string(task: StringType) -> StringResult:
    return {"None": task["input"]}


def route(task: N1st) -> N1stResult:
    return "left"


handlers: ImportHandlers = {
    "String": string,
    "__proto__": lambda task: 7 if isinstance(task, str) else None,
    'a"b\\\\c*/': lambda task: task["Any"],
    "Worker": lambda task: task["x"].get("keys", ""),
    "1st": route,
    "Record": lambda task: ["a", None],
    "äöü": lambda task: 1,
}
app = Worker()
register(app, handlers)
assert set(app.kinds) == set(handlers), app.kinds
"""


def generate(folder: Path, name: str) -> Path:
    """Writes the code of a template, and returns its path."""
    arguments = [str(program()), "workflow", "generate", str(TEMPLATES / f"{name}.yaml"), "--language", "python"]
    code = subprocess.run(arguments, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    path = folder / f"{name}.py"
    path.write_text(code, encoding="utf-8")
    return path


def check(folder: Path) -> str:
    """Returns the findings of mypy."""
    arguments = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--python-version", "3.10"]
    cache = os.environ.get("TMPDIR", "/tmp") + "/onward-mypy-generated"
    files = sorted(path.name for path in folder.glob("*.py"))
    environment = {**os.environ, "MYPYPATH": str(TESTS.parent / "src")}
    done = subprocess.run(
        [*arguments, "--cache-dir", cache, *files],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def run_file(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Runs a file of the folder."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent / "src")}
    return subprocess.run(
        [sys.executable, "-W", "error", name], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("name", "program_code"), [("orders", ORDERS), ("hostile", HOSTILE)])
def test_the_types_of_generated_code_pass_a_strict_check(tmp_path: Path, name: str, program_code: str) -> None:
    generate(tmp_path, name)
    (tmp_path / "app.py").write_text(program_code, encoding="utf-8")
    assert check(tmp_path) == ""


def test_hostile_names_are_the_keys_and_kinds_of_running_code(tmp_path: Path) -> None:
    generate(tmp_path, "hostile")
    (tmp_path / "app.py").write_text(HOSTILE, encoding="utf-8")
    done = run_file(tmp_path, "app.py")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ('task["index"] + 40', 'str(task["index"])', '"TypedDict item "id" has type "int"'),
        ('"order": "A-17"', '"order": 17', 'TypedDict item "order" has type "str"'),
        ('"type": "by-phone"', '"type": "by-post"', "Literal"),
        ('"prices.total": total, ', "", 'Missing key "prices.total"'),
        ('task["index"]', 'task["place"]', "Unsupported operand types"),
    ],
    ids=["result", "input", "choice", "missing", "payload"],
)
def test_a_wrong_program_is_found_by_the_type_checker(tmp_path: Path, old: str, new: str, finding: str) -> None:
    generate(tmp_path, "orders")
    assert old in ORDERS
    (tmp_path / "app.py").write_text(ORDERS.replace(old, new, 1), encoding="utf-8")
    assert finding.strip('"') in check(tmp_path)


def test_a_missing_handler_is_reported_before_the_worker_runs(tmp_path: Path) -> None:
    generate(tmp_path, "orders")
    (tmp_path / "app.py").write_text(ORDERS.replace('"prices.total": total, ', "", 1), encoding="utf-8")
    assert "no handler for prices.total" in run_file(tmp_path, "app.py").stderr


def test_a_run_has_the_generated_types_from_its_start_to_its_result(tmp_path: Path) -> None:
    generate(tmp_path, "orders")
    app = tmp_path / "app.py"
    app.write_text(ORDERS, encoding="utf-8")
    gateway = Gateway(tmp_path, app)
    try:
        gateway.start()
        order = '{"order": "A-17", "lines": [{"article": "tea", "quantity": 2}]}'
        shown = gateway.onward("run", str(TEMPLATES / "orders.yaml"), "--input", order)
        assert "A-17 [40] 2.0" in shown, shown
    finally:
        gateway.end()
