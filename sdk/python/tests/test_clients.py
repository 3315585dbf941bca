"""The clients pass every case of sdk/conformance/clients, with threads and on the event loop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from gateway_process import program

FOLDER = Path(__file__).parents[2] / "conformance"
DRIVER = Path(__file__).parent / "client_driver.py"
CASES = sorted(path.stem for path in (FOLDER / "clients").glob("*.json"))
ASYNC = ["07-wait", "11-watch", "20-server", "22-killed-server"]
"""The event loop shares the code of the requests, so that a part of the cases suffices."""


@pytest.mark.parametrize(("case", "mode"), [(case, "sync") for case in CASES] + [(case, "async") for case in ASYNC])
def test_case(case: str, mode: str) -> None:
    command = [sys.executable, str(FOLDER / "clients.py"), "--only", case, "--", sys.executable, "-W", "error"]
    done = subprocess.run(
        [*command, str(DRIVER), mode],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src"), "ONWARD_BIN": str(program())},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_programs_of_the_guide_print_what_it_says(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "client_guide.py"), "python", str(tmp_path / "guide.py"), "--"]
    done = subprocess.run(
        [*command, sys.executable, "-W", "error"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src"), "ONWARD_BIN": str(program())},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
