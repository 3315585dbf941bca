"""The worker passes every script of the scripted gateway, on every carrier."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "conformance"
WORKER = Path(__file__).parent / "conformance_worker.py"


@pytest.mark.parametrize("options", [[], ["--carrier", "http"]], ids=["streams", "http"])
def test_every_script_passes(options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "conformance.py"), *options, "--", sys.executable, str(WORKER)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " 0 failed" in done.stdout
