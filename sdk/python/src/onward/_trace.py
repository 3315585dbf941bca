"""W3C trace context: active around a handler if OpenTelemetry is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

try:
    from opentelemetry import context as _context
    from opentelemetry import propagate as _propagate
except ImportError:  # OpenTelemetry is optional
    _context = None  # type: ignore[assignment]

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
