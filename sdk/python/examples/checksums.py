"""Checksums of a folder: one task lists it, one child for each file, and the results come together.

onward submit --kind checksums --wait '{"folder": "."}' &
onward work --app "python checksums.py"
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onward import Context, Fail, Worker

app = Worker(name="checksums")

BLOCK_BYTES = 1_048_576


@dataclass
class Folder:
    """A folder on this machine."""

    folder: str


@dataclass
class File:
    """A file on this machine."""

    path: str


@app.handler("checksums", retry=3)
def checksums(task: Folder, ctx: Context) -> Any:
    if not ctx.is_resumed:
        folder = Path(task.folder)
        if not folder.is_dir():
            raise Fail(f"`{folder}` is no folder")
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            ctx.spawn("checksum", File(str(path)))
        return ctx.await_children("listed", fail_fast=True)
    results = [child.value() for child in ctx.children()]
    return {result["path"]: result["sha256"] for result in results}


@app.handler("checksum", retry=3, timeout=600)
def checksum(task: File, ctx: Context) -> dict[str, str]:
    path = Path(task.path)
    size, done, digest = path.stat().st_size, 0, hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            ctx.check()
            digest.update(block)
            done += len(block)
            ctx.progress(done=done, total=size)
    return {"path": task.path, "sha256": digest.hexdigest()}


if __name__ == "__main__":
    app.run()
