#!/usr/bin/env python3
"""Runs the programs of docs/guides/clients.md in one language, and compares what they print.

    python3 client_guide.py LANGUAGE FILE -- COMMAND…

The blocks of LANGUAGE are written to FILE as one program. COMMAND runs it, on a server and workers
that the page's shell block starts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from client_server import Server

PAGE = Path(__file__).parents[2] / "docs/guides/clients.md"


def blocks(language: str) -> list[str]:
    """Returns the code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def prepare(server: Server) -> None:
    """Carries out the page's shell block on a server that runs already."""
    [template], [shell] = blocks("yaml"), blocks("sh")
    (server.folder / "approval.yaml").write_text(template)
    for line in shell.splitlines():
        command = line.split()
        if command[:2] == ["onward", "work"]:
            server.work(*command[2:])
        elif command != ["onward", "serve"]:
            server.onward(*command[1:])


def main() -> int:
    """Returns the exit code."""
    language, file, _, *command = sys.argv[1:]
    Path(file).write_text("\n".join(blocks(language)), encoding="utf-8")
    server = Server()
    try:
        prepare(server)
        environment = {**os.environ, "ONWARD_URL": server.url, "ONWARD_STORE": server.environment["ONWARD_STORE"]}
        environment.pop("ONWARD_KEY", None)
        done = subprocess.run([*command, file], env=environment, stdout=subprocess.PIPE, text=True, timeout=60)
    finally:
        server.close()
    expected = "".join(blocks("text"))
    if done.returncode != 0 or done.stdout != expected:
        print(f"exit code {done.returncode}; printed\n{done.stdout}\nand the page has\n{expected}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
