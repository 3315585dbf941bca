"""The README's code runs, and its quick start does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
from gateway_process import program

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
[SHELL] = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", PYTHON, ids=[str(number) for number in range(len(PYTHON))])
def test_the_code_of_the_readme_runs(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("readme")
    monkeypatch.setitem(sys.modules, "readme", module)
    exec(compile(code, "README.md", "exec", dont_inherit=True), module.__dict__)
    for name, value in list(vars(module).items()):
        if name.startswith("test_") and callable(value):
            value()


def test_the_quick_start_does_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PYTHON[0])
    folders = [str(program().parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": ":".join(folders), "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    environment.pop("ONWARD_STORE", None)
    done = subprocess.run(
        ["sh", "-ec", f"{SHELL}wait $! || test $? = 130"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['"Hello, Ada"', '"Hallo, Grace"']
