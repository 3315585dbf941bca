"""W3C trace context: active around a handler if OpenTelemetry is installed."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

_context: Any = None
_propagate: Any = None
with contextlib.suppress(ImportError):  # OpenTelemetry is optional
    _propagate = importlib.import_module("opentelemetry.propagate")
    _context = importlib.import_module("opentelemetry.context")

_NONE: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


def active(trace: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
    """Returns a scope in which the submitter's span is the parent of new spans."""
    return _NONE if not trace or _context is None else _attached(trace)


@contextlib.contextmanager
def _attached(trace: Mapping[str, str]) -> Iterator[None]:
    token = _context.attach(_propagate.extract(trace))
    try:
        yield
    finally:
        _context.detach(token)
