"""What a watch or a trace holds: a header, and every record with its time and thread, as plain values and back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple, TypeVar

from umarray import events
from umarray.places import HOST, Device, Host


class Stamped(NamedTuple):
    """A record, and when and where it was told."""

    at: float
    """`time.perf_counter` seconds; of an effect: its start."""
    thread: int
    """`threading.get_ident`, 0 for effects, which no thread tells."""
    record: events.Record


@dataclass(frozen=True)
class Header:
    """What is known of a recording as a whole. All values are plain, so that it goes into a trace as it is."""

    began: float
    """`time.perf_counter` seconds."""
    ended: float | None = None
    """None: it is still open, or the program ended in between."""
    driver: str = ""
    """"host", "cuda" or "hip"."""
    mode: str = ""
    page: int = 4096
    """Bytes of a page that hints act on."""
    migrates: int = 4096
    """Bytes of a page that migrates, where that is known; else as `page`."""
    memory: Mapping[int, int] = field(default_factory=dict)
    """Bytes of each device."""
    sources: tuple[Mapping[str, Any], ...] = ()
    """What could tell of effects, the best first: `counters.About` as a dict."""
    lost: int = 0
    """Records that there was no room for."""
    costs: Mapping[str, Any] = field(default_factory=dict)
    """What moving costs, for modelled savings: `facts.Costs` as a dict."""
    pools: tuple[Mapping[str, Any], ...] = ()
    """`PoolStatistics.as_dict` of the pools at hand at the end."""

    @property
    def sees(self) -> frozenset[str]:
        """What can be seen at all: fields of `counters.Counts`, and "addresses"."""
        return frozenset(name for source in self.sources for name in source["sees"])


@dataclass(frozen=True)
class Recording:
    """A header and the records, in order of time."""

    header: Header
    records: tuple[Stamped, ...]


TYPES: Mapping[str, type[events.Record]] = {
    name: kind
    for name, kind in inspect.getmembers(events, inspect.isclass)
    if issubclass(kind, events.Record) and kind is not events.Record
}


def as_plain(record: events.Record) -> dict[str, Any]:
    """A record as plain values for JSON: "type" is its class, places are "host" or a device's number."""
    return {"type": type(record).__name__, **{one.name: _plain(getattr(record, one.name)) for one in fields(record)}}


def from_plain(values: Mapping[str, Any]) -> events.Record:
    """What `as_plain` made of a record. Fields of a newer version are left out.

    Raises
    ------
    ValueError
        There is no such record, or one without a field that it must have; the text quotes it.

    Examples
    --------
    >>> from umarray import Device, events
    >>> record = events.Prefetched(4096, 8192, Device(0), True)
    >>> from_plain(as_plain(record)) == record
    True
    """
    kind = TYPES.get(str(values.get("type")))
    if kind is None:
        raise ValueError(f"{values.get('type')!r} is no record of umarray")
    try:
        return _checked(
            kind(**{one.name: _whole(one.name, values[one.name]) for one in fields(kind) if one.name in values})
        )
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{dict(values)!r} is no {kind.__name__}: {error}") from None


_Value = TypeVar("_Value", events.Record, events.Operand)
_KINDS: Mapping[str, tuple[type, ...]] = {
    **{"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)},
    **{"Place": (Host, Device), "tuple[int, ...]": (tuple,)},
}


def _checked(value: _Value) -> _Value:
    """A record or an operand whose fields are of their types: a file may hold anything."""
    record: Any = type(value)
    for name, kinds in _kinds(record):
        given: Any = getattr(value, name)
        lengths: Any = given if name == "shape" else ()
        if not isinstance(given, kinds) or not all(isinstance(length, int) for length in lengths):
            raise TypeError(f"{name} is {given!r}")
    return value


@cache
def _kinds(record: type[events.Record] | type[events.Operand]) -> tuple[tuple[str, tuple[type, ...]], ...]:
    """What each field of a class may be, where that is plain."""
    found = []
    for one in fields(record):
        plain, _, none = str(one.type).partition(" | ")
        if plain in _KINDS:
            found.append((one.name, (*_KINDS[plain], type(None)) if none else _KINDS[plain]))
    return tuple(found)


def _plain(value: Any) -> Any:
    if isinstance(value, Host):
        return "host"
    if isinstance(value, Device):
        return value.id
    if isinstance(value, events.Operand):
        return [value.address, value.nbytes, list(value.shape), value.dtype]
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value


def _whole(name: str, value: Any) -> Any:
    if name in ("place", "source", "to"):
        return HOST if value == "host" else None if value is None else Device(int(value))
    if name == "arrays":
        return tuple(_checked(events.Operand(one[0], one[1], tuple(one[2]), one[3])) for one in value)
    if name == "lines":
        return tuple((str(line), int(count), int(nbytes)) for line, count, nbytes in value)
    return tuple(value) if isinstance(value, list) else value
