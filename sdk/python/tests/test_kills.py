"""Workflows whose steps are in workers, while every process is killed, paused, stopped and replaced."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from gateway_process import program

FOLDER = Path(__file__).parents[2] / "conformance"
WORKER = Path(__file__).parent / "steps_worker.py"


@pytest.mark.parametrize("carrier", ["ipc", "http"])
def test_no_step_is_lost_or_done_twice(carrier: str) -> None:
    worker = shlex.join([sys.executable, str(WORKER)])
    done = subprocess.run(
        [sys.executable, str(FOLDER / "kills.py"), "--faults", "5", "--carrier", carrier, "--worker", worker],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src"), "ONWARD_BIN": str(program())},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
