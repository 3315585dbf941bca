"""The worker passes every script of the scripted gateway."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "conformance"
WORKER = Path(__file__).parent / "conformance_worker.py"


def test_every_script_passes() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "conformance.py"), "--", sys.executable, str(WORKER)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " 0 failed" in done.stdout
