#!/usr/bin/env python3
"""Makes the wheel of a platform from the pure wheel, with the program `onward` in it.

    python3 package.py WHEEL PROGRAM PLATFORM FOLDER

PLATFORM is a tag such as `manylinux2014_x86_64.musllinux_1_1_x86_64` or `macosx_11_0_arm64`. pip
installs the program into the folder of scripts. Equal inputs make equal wheels.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

TIME = (2020, 1, 1, 0, 0, 0)


def record(name: str, data: bytes) -> str:
    """Returns the line of a file in RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def main() -> None:
    """Writes the wheel, and prints its path."""
    wheel, program, platform, folder = (Path(argument) for argument in sys.argv[1:])
    stem = wheel.name.removesuffix("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as pure:
        files = {name: (pure.read(name), 0o644) for name in pure.namelist()}
    tags = f"{stem}.dist-info/WHEEL"
    lines = [line for line in files[tags][0].decode().splitlines() if not line.startswith(("Tag:", "Root-Is-Purelib:"))]
    lines += ["Root-Is-Purelib: false", *(f"Tag: py3-none-{tag}" for tag in str(platform).split("."))]
    files[tags] = ("\n".join(lines) + "\n").encode(), 0o644
    files[f"{stem}.data/scripts/onward"] = program.read_bytes(), 0o755
    del files[f"{stem}.dist-info/RECORD"]
    records = [record(name, data) for name, (data, _) in files.items()] + [f"{stem}.dist-info/RECORD,,"]
    files[f"{stem}.dist-info/RECORD"] = ("\n".join(records) + "\n").encode(), 0o644
    target = folder / f"{stem}-py3-none-{platform}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for name, (data, mode) in files.items():
            info = zipfile.ZipInfo(name, TIME)
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, data)
    print(target)


if __name__ == "__main__":
    main()
