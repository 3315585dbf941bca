"""The guard of orchestrations: it refuses what a replay would do again, or see otherwise."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from onward.errors import NotDeterministic

_REFUSED = {
    "_thread.start_new_thread": "starts a thread",
    "os.exec": "starts a program",
    "os.fork": "forks",
    "os.forkpty": "forks",
    "os.posix_spawn": "starts a program",
    "os.spawn": "starts a program",
    "os.system": "starts a program",
    "socket.__new__": "opens a socket",
    "socket.bind": "binds a socket",
    "socket.connect": "connects a socket",
    "socket.getaddrinfo": "resolves a name",
    "subprocess.Popen": "starts a program",
    "time.sleep": "sleeps",
}
"""Actions that no orchestration may take, by the audit event that Python raises for each."""

_thread = threading.local()
_install_lock = threading.Lock()
_is_installed = False


def install() -> None:
    """Installs the guard. It cannot be removed, and costs one look-up outside of orchestrations."""
    global _is_installed
    with _install_lock:
        if _is_installed:
            return
        _is_installed = True
        sys.addaudithook(_audit)
        # Older versions raise no audit event for these.
        if sys.version_info < (3, 13):
            time.sleep = _checked("time.sleep", time.sleep)
        if sys.version_info < (3, 12):
            threading.Thread.start = _checked("_thread.start_new_thread", threading.Thread.start)  # type: ignore[method-assign]


def _checked(event: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def checked(*arguments: Any) -> Any:
        _audit(event, ())
        return function(*arguments)

    return checked


def _audit(event: str, _: Any) -> None:
    if not getattr(_thread, "is_active", False):
        return
    what = _REFUSED.get(event)
    if what is not None:
        raise NotDeterministic(
            f"the orchestration {what} ({event}), which a replay would do again; move it into a task,"
            " and wait with `ctx.sleep`"
        )


@contextmanager
def active() -> Iterator[None]:
    """Guards this thread."""
    _thread.is_active = True
    try:
        yield
    finally:
        _thread.is_active = False
