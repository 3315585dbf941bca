#!/usr/bin/env python3
"""Checks a worker program against the worker protocol, by scripts that play a gateway.

    python3 conformance.py [--only TEXT] [--carrier child|ipc|tcp|http] -- COMMAND…

COMMAND starts a worker with the handlers that README.md lists. Every script of the folder `scripts`
runs once on each of its carriers. With `--carrier http` those for ipc run over HTTP instead, for
workers that have this carrier. The exit code is 1 if one fails.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from gateway import Failed, Gateway

SCRIPTS = Path(__file__).parent / "scripts"


def main() -> int:
    """Runs the scripts and prints a table; returns the exit code."""
    arguments = _arguments()
    results = []
    for path in sorted(SCRIPTS.glob("*.json")):
        script = json.loads(path.read_text())
        for carrier in carriers_of(script, arguments.carrier):
            if arguments.only in path.stem:
                results.append(run(arguments.command, carrier, path.stem, script))
    failures = results.count(False)
    print(f"{len(results) - failures} passed, {failures} failed")
    return 1 if failures or not results else 0


def carriers_of(script: dict[str, Any], only: str | None) -> list[str]:
    """Returns the carriers on which a script runs."""
    carriers: list[str] = script["carriers"]
    if only == "http":
        return ["http"] if {"ipc", "http"} & set(carriers) and script.get("http", True) else []
    return [carrier for carrier in carriers if only in (None, carrier)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Checks a worker program against the worker protocol.")
    parser.add_argument("--only", default="", help="run only the scripts whose name contains this text")
    parser.add_argument("--carrier", choices=["child", "ipc", "tcp", "http"], help="run only on this carrier")
    parser.add_argument("command", nargs="+", help="the command that starts the worker")
    return parser.parse_args()


def run(command: list[str], carrier: str, name: str, script: dict[str, object]) -> bool:
    """Plays one script on one carrier; prints its row and returns whether it passed."""
    began = time.monotonic()
    gateway = Gateway(command, carrier, script)
    try:
        gateway.play()
    except Failed as failure:
        print(f"FAIL  {carrier:5}  {name:34} {failure}")
        print("".join(f"      | {line}\n" for line in gateway.worker_log().splitlines()), end="")
        return False
    print(f"ok    {carrier:5}  {name:34} {time.monotonic() - began:5.2f} s")
    return True


if __name__ == "__main__":
    raise SystemExit(main())
