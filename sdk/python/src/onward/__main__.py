"""`python -m onward …`: runs the program `onward`, which the wheels of the platforms contain."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path


def program() -> Path | None:
    """Returns the program of this installation, or None if it has none."""
    schemes = [None, sysconfig.get_preferred_scheme("user")]
    folders = [sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts") for scheme in schemes]
    found = (Path(folder) / "onward" for folder in folders)
    return next((path for path in found if path.is_file()), None)


def main() -> None:
    """Becomes the program."""
    path = program()
    if path is None:
        raise SystemExit(
            "this installation of onward has no program, because it was built from source;"
            " install the wheel of your platform, or put the program `onward` into the path"
        )
    os.execv(path, [str(path), *sys.argv[1:]])


if __name__ == "__main__":
    main()
