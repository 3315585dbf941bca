"""Patterns of expected messages.

An object matches if each of its fields matches; further fields are allowed. A list matches an equal
number of items. `"$any"` matches every value that is present, `{"$absent": true}` a missing one,
`{"$contains": X}` a text or list that contains X, `{"$bind": NAME}` any value, which
`{"$value": NAME}` then stands for in later steps.
"""

from __future__ import annotations

from typing import Any

MISSING = object()


def mismatch(pattern: Any, value: Any, names: dict[str, Any], where: str = "") -> str | None:
    """Returns the first difference, or None."""
    if isinstance(pattern, dict):
        return _object(pattern, value, names, where)
    if value is MISSING:
        return f"{where} is missing"
    if pattern == "$any":
        return None
    if isinstance(pattern, list):
        if not isinstance(value, list) or len(value) != len(pattern):
            return f"{where} is {value!r:.200}, not a list of {len(pattern)}"
        pairs = enumerate(zip(pattern, value, strict=True))
        faults = (mismatch(part, item, names, f"{where}[{at}]") for at, (part, item) in pairs)
        return next((fault for fault in faults if fault), None)
    return None if value == pattern and type(value) is type(pattern) else f"{where} is {value!r:.200}, not {pattern!r}"


def _object(pattern: dict[str, Any], value: Any, names: dict[str, Any], where: str) -> str | None:
    if "$absent" in pattern:
        return None if value is MISSING or value is None else f"{where} is {value!r:.200}, but should be absent"
    if value is MISSING:
        return f"{where} is missing"
    if "$bind" in pattern:
        names[pattern["$bind"]] = value
        return None
    if "$value" in pattern:
        expected = names[pattern["$value"]]
        return None if value == expected else f"{where} is {value!r:.200}, not {expected!r}"
    if "$contains" in pattern:
        return None if pattern["$contains"] in value else f"{where} is {value!r:.200}, without {pattern['$contains']!r}"
    if not isinstance(value, dict):
        return f"{where} is {value!r:.200}, not an object"
    faults = (mismatch(part, value.get(name, MISSING), names, f"{where}.{name}") for name, part in pattern.items())
    return next((fault for fault in faults if fault), None)


def fill(template: Any, names: dict[str, Any]) -> Any:
    """Returns a template with the bound values in their places."""
    if isinstance(template, dict):
        if "$value" in template:
            return names[template["$value"]]
        return {name: fill(part, names) for name, part in template.items()}
    if isinstance(template, list):
        return [fill(part, names) for part in template]
    return template
