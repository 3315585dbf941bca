"""Payloads: JSON to typed values and back, by the annotations of a handler."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import json
import types
import typing
import uuid
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

_encode_json = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=lambda value: _plain(value)
).encode
_decode_json = json.JSONDecoder().decode

_PRIMITIVES: dict[Any, tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}


class PayloadError(ValueError):
    """A payload or result that does not have the type that the handler states."""


def encode(value: Any) -> bytes:
    """Returns a value as a payload: bytes as they are, everything else as JSON.

    Dataclasses, pydantic models, enums, dates and UUIDs are written as JSON too.

    Raises PayloadError if the value cannot be written as JSON.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    try:
        return _encode_json(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PayloadError(f"a {type(value).__name__} cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def decode_json(payload: bytes) -> Any:
    """Returns the JSON value of a payload; None if it is empty."""
    if not payload:
        return None
    try:
        return _decode_json(payload.decode())
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"the payload is not JSON: {error}") from None


@functools.cache
def decoder_for(annotation: Any) -> Callable[[bytes], Any]:
    """Returns the function that reads a payload as the annotated type."""
    if annotation is bytes:
        return bytes
    if annotation is None or annotation is Any or annotation is object:
        return decode_json
    if hasattr(annotation, "model_validate_json"):
        return _pydantic(annotation)
    convert = converter_for(annotation)
    name = getattr(annotation, "__name__", str(annotation))
    return lambda payload: convert(decode_json(payload), name)


def _pydantic(model: Any) -> Callable[[bytes], Any]:
    def decode(payload: bytes) -> Any:
        try:
            return model.model_validate_json(payload)
        except ValueError as error:
            raise PayloadError(f"the payload is no {model.__name__}: {error}") from None

    return decode


Converter = Callable[[Any, str], Any]


@functools.cache
def converter_for(annotation: Any) -> Converter:
    """Returns the function that turns a JSON value into the annotated type.

    Its second argument names the place in errors.
    """
    if annotation in _PRIMITIVES:
        return _primitive(annotation)
    if annotation is None or annotation is type(None):
        return _none
    if annotation is Any or annotation is object or annotation in (dict, list):
        return lambda value, _: value
    if dataclasses.is_dataclass(annotation):
        return _dataclass(annotation)
    if hasattr(annotation, "model_validate"):
        return _model(annotation)
    if isinstance(annotation, type) and issubclass(annotation, (enum.Enum, uuid.UUID)):
        return _called(annotation, annotation.__name__)
    if isinstance(annotation, type) and issubclass(annotation, (datetime.date, datetime.time)):
        return _called(annotation.fromisoformat, annotation.__name__)
    if typing.is_typeddict(annotation):
        return lambda value, _: value
    return _generic(annotation)


def _generic(annotation: Any) -> Converter:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _union([converter_for(argument) for argument in arguments], annotation)
    if origin is Literal:
        return _literal(arguments)
    if origin in (list, set, frozenset) or (origin is tuple and arguments[1:] == (...,)):
        return _sequence(origin, converter_for(arguments[0]))
    if origin is dict:
        return _mapping(converter_for(arguments[1]))
    raise TypeError(
        f"the annotation {annotation} of a handler has no JSON form; use a dataclass, a pydantic model,"
        " dict, list, str, int, float, bool, None, bytes or Any"
    )


def _fault(where: str, value: object, rule: str) -> PayloadError:
    return PayloadError(f"{where} is {value!r:.100}; it must be {rule}")


def _primitive(expected: type) -> Converter:
    allowed = _PRIMITIVES[expected]

    def convert(value: Any, where: str) -> Any:
        if type(value) not in allowed:
            raise _fault(where, value, f"of type {expected.__name__}")
        return value

    return convert


def _none(value: Any, where: str) -> None:
    if value is not None:
        raise _fault(where, value, "null")


def _called(make: Callable[[Any], Any], name: str) -> Converter:
    def convert(value: Any, where: str) -> Any:
        try:
            return make(value)
        except (ValueError, TypeError, AttributeError):
            raise _fault(where, value, f"a {name}") from None

    return convert


def _model(model: Any) -> Converter:
    def convert(value: Any, where: str) -> Any:
        try:
            return model.model_validate(value)
        except ValueError as error:
            raise PayloadError(f"{where} is no {model.__name__}: {error}") from None

    return convert


def _union(choices: list[Converter], annotation: Any) -> Converter:
    def convert(value: Any, where: str) -> Any:
        for choice in choices:
            try:
                return choice(value, where)
            except PayloadError:
                continue
        raise _fault(where, value, f"of type {annotation}")

    return convert


def _literal(values: tuple[Any, ...]) -> Converter:
    def convert(value: Any, where: str) -> Any:
        if value not in values:
            raise _fault(where, value, f"one of {', '.join(map(repr, values))}")
        return value

    return convert


def _sequence(make: Any, item: Converter) -> Converter:
    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            raise _fault(where, value, "a list")
        return make(item(entry, f"{where}[{at}]") for at, entry in enumerate(value))

    return convert


def _mapping(item: Converter) -> Converter:
    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise _fault(where, value, "an object")
        return {key: item(entry, f"{where}.{key}") for key, entry in value.items()}

    return convert


def _dataclass(model: Any) -> Converter:
    hints = typing.get_type_hints(model)
    fields = [(item.name, hints[item.name], _is_required(item)) for item in dataclasses.fields(model) if item.init]
    # The converters are made at the first use, so that a dataclass may contain itself.
    converters: dict[str, Converter] = {}

    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise _fault(where, value, f"an object with the fields of {model.__name__}")
        arguments = {}
        for name, hint, required in fields:
            if name in value:
                if name not in converters:
                    converters[name] = converter_for(hint)
                arguments[name] = converters[name](value[name], f"{where}.{name}")
            elif required:
                raise PayloadError(f"{where}.{name} is missing; {model.__name__} requires it")
        return model(**arguments)

    return convert


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
