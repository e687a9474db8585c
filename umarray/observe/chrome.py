"""A recording as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing show.

The format is Chrome's "Trace Event Format": complete events ("X") with microseconds from the recording's begin, and
names of rows ("M"). Rows: the threads of the program with their scopes, waits and requests; a row for each stage of
pipelines; a row for each place with the pages that came to it, and one with the faults that it waited for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from umarray import events
from umarray.observe.recording import Recording, Stamped, as_plain
from umarray.places import Host, Place

_THREADS, _STAGES, _PLACES = 1, 2, 3  # the groups of rows
_SHORTEST = 1e-6  # seconds: what has no length is still to be seen


def to_chrome(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording as a Chrome trace.

    Parameters
    ----------
    recording : Recording
        Of a watch (``w.recording``), or of `read_trace`.
    path : str or path
        The file, a .json; one that is there is replaced.
    """
    rows = _Rows()
    found = [event for stamped in _paired(recording) for event in _events(stamped, rows)]
    began = min([recording.header.began, *(event["ts"] for event in found)])
    for event in found:
        event["ts"] = (event["ts"] - began) * 1e6
        if "dur" in event:
            event["dur"] = max(event["dur"], _SHORTEST) * 1e6
    content = {"traceEvents": [*rows.names(), *found], "displayTimeUnit": "ms", "otherData": _header(recording)}
    Path(path).write_text(json.dumps(content, default=str), encoding="utf-8")


class _Rows:
    """Numbers for rows, in the order in which they appear."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}

    def of(self, group: int, name: str) -> dict[str, int]:
        number = self._numbers.setdefault((group, name), len(self._numbers) + 1)
        return {"pid": group, "tid": number}

    def names(self) -> Iterator[dict[str, Any]]:
        groups = {_THREADS: "program", _STAGES: "pipeline stages", _PLACES: "pages"}
        for group, name in groups.items():
            yield {"ph": "M", "name": "process_name", "pid": group, "args": {"name": name}}
        for (group, name), number in self._numbers.items():
            yield {"ph": "M", "name": "thread_name", "pid": group, "tid": number, "args": {"name": name}}


def _paired(recording: Recording) -> Iterator[tuple[Stamped, float]]:
    """Each record with its end: of what began and was ended, that; else the moment itself, or the recording's end."""
    ends = {one.record.serial: one.at for one in recording.records if isinstance(one.record, events.Ended)}
    last = recording.header.ended or max((one.at for one in recording.records), default=0.0)
    for one in recording.records:
        if isinstance(one.record, events.Began):
            yield one, ends.get(one.record.serial, last)
        elif not isinstance(one.record, events.Ended):
            yield one, one.at


def _events(stamped: tuple[Stamped, float], rows: _Rows) -> Iterator[dict[str, Any]]:
    (at, thread, record), end = stamped
    values = as_plain(record)
    del values["type"]
    if isinstance(record, events.StageRan):
        row = rows.of(_STAGES, record.stage)
        yield _span(f"{record.stage} {record.index}", record.start, record.end, row, values)
    elif isinstance(record, events.Migrated):
        row = rows.of(_PLACES, f"to {_name(record.to)}")
        yield _span(f"{record.kind}: {record.cause}", record.start, record.end, row, values)
    elif isinstance(record, events.Faulted):
        yield _span(f"{record.count} faults", at, at, rows.of(_PLACES, f"faults of {_name(record.place)}"), values)
    elif isinstance(record, events.Used):
        yield _span("first touch", at, at, rows.of(_PLACES, f"to {_name(record.place)}"), values)
    elif isinstance(record, (events.Made, events.Gone)):
        yield _span(type(record).__name__, at, at, rows.of(_PLACES, "blocks"), values)
    elif isinstance(record, events.Named):
        return
    else:
        row = rows.of(_THREADS, f"thread {thread}")
        name, start = type(record).__name__, at
        if isinstance(record, events.Began):
            name = f"{record.action} {record.label}".strip()
        elif isinstance(record, events.Waited):
            name, start, end = record.reason, at - record.seconds, at
        yield _span(name, start, end, row, values)


def _span(name: str, start: float, end: float, row: dict[str, int], values: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": start, "dur": end - start, **row, "args": values}


def _name(place: Place) -> str:
    return "the host" if isinstance(place, Host) else f"device {place.id}"


def _header(recording: Recording) -> dict[str, Any]:
    header = recording.header
    return {"driver": header.driver, "mode": header.mode, "lost records": header.lost}
