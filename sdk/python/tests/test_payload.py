"""Payloads become the types that a handler states, and errors name the place."""

from __future__ import annotations

import datetime
import enum
import json
import uuid
from dataclasses import dataclass, field
from typing import Any, Literal

import pydantic
import pytest

from onward import _payload
from onward._payload import PayloadError


class Size(enum.Enum):
    SMALL = "small"


@dataclass
class Point:
    x: int
    y: float = 0.0


@dataclass
class Shape:
    name: str
    points: list[Point]
    size: Size = Size.SMALL
    note: str | None = None
    tags: dict[str, int] = field(default_factory=dict)
    inner: Shape | None = None


class Model(pydantic.BaseModel):
    width: int


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 3),
        (float, 3),
        (str, "a"),
        (bool, True),
        (None, None),
        (list[int], [1, 2]),
        (dict[str, int], {"a": 1}),
        (int | None, None),
        (Literal["a", "b"], "a"),
        (Any, {"x": [1]}),
        (Point, Point(1, 2.5)),
        (Shape, Shape("s", [Point(1)], note="n", tags={"a": 1}, inner=Shape("t", []))),
        (uuid.UUID, uuid.UUID(int=7)),
        (datetime.datetime, datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)),
        (Model, Model(width=3)),
        (list[Model], [Model(width=3)]),
        (Size, Size.SMALL),
    ],
)
def test_a_value_returns_from_its_payload(annotation: Any, value: Any) -> None:
    assert _payload.decoder_for(annotation)(_payload.encode(value)) == value


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (int, "x", "of type int"),
        (int, True, "of type int"),
        (Point, {"y": 1}, "Point.x is missing"),
        (Point, [1], "an object"),
        (Shape, {"name": "s", "points": [{"x": "far"}]}, r"Shape.points\[0\].x is 'far'"),
        (Literal["a"], "b", "one of 'a'"),
        (int | None, "x", "of type"),
        (list[int], {"a": 1}, "a list"),
        (uuid.UUID, "x", "a UUID"),
        (Model, {"width": "wide"}, "no Model"),
    ],
)
def test_a_wrong_value_names_its_place(annotation: Any, value: Any, text: str) -> None:
    with pytest.raises(PayloadError, match=text):
        _payload.decoder_for(annotation)(json.dumps(value).encode())


def test_bytes_stay_as_they_are() -> None:
    assert _payload.decoder_for(bytes)(b"\x00\xff") == b"\x00\xff"
    assert _payload.encode(b"\x00\xff") == b"\x00\xff"


def test_unknown_fields_are_ignored_so_that_submitters_may_be_newer() -> None:
    assert _payload.decoder_for(Point)(b'{"x":1,"z":2}') == Point(1)


@pytest.mark.parametrize("value", [float("nan"), object(), {"a": {1: object()}}])
def test_a_value_without_json_form_is_refused(value: Any) -> None:
    with pytest.raises(PayloadError, match="cannot be written as JSON"):
        _payload.encode(value)


def test_an_annotation_without_json_form_is_refused_at_registration() -> None:
    with pytest.raises(TypeError, match="use a dataclass"):
        _payload.decoder_for(complex)
