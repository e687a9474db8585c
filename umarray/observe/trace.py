"""trace: everything that is heard, written to a file of JSON lines as it happens; and reading such a file.

The first line says what it is: ``{"umarray": "trace", "version": 1, "pid": ..., "wall": seconds since 1970 at
"began", "header": {...}}``. Then a line a record: "at" (`time.perf_counter` seconds), "thread", "type" and the fields
of the class of `umarray.events` that "type" names. The last line is ``{"umarray": "end", "header": {...}}``; it is
missing where the process crashed. Lines are written whole, so a crash loses what happened in the last fifth of a
second.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn

from umarray.drivers import get_driver
from umarray.errors import ClosedError
from umarray.observe.listening import Listening, quietly
from umarray.observe.recording import Header, Recording, Stamped, as_plain, from_plain
from umarray.sizes import parse_size

VERSION = 1
_EVERY = 0.2  # seconds between writes
_END = 64 << 10  # bytes that are kept free for the last line


class trace:
    """A `with` block of which everything is written to a file.

    Parameters
    ----------
    path : str or path
        The file; one that is there is replaced.
    limit : int or str
        The most bytes that the file may take, "256MiB" by default. Later records are left out, and counted.

    Raises
    ------
    OSError
        The file cannot be written; nothing has begun.
    ClosedError
        Entered a second time.

    Notes
    -----
    A thread writes every 0.2 seconds. A file that cannot be written any more (a full disk) is told once, and the
    program goes on. `read_trace` reads the file, also one that a crash cut off; `umarray.observe.chrome.to_chrome`
    makes of it what Perfetto and chrome://tracing show.

    Examples
    --------
    >>> import tempfile, umarray as um
    >>> from umarray.observe.trace import read_trace
    >>> path = tempfile.mktemp(".jsonl")
    >>> with um.trace(path):
    ...     x = um.zeros(1000)
    >>> any(type(one.record).__name__ == "Made" for one in read_trace(path).records)
    True
    """

    def __init__(self, path: str | os.PathLike[str], limit: int | str = "256MiB") -> None:
        self.path = Path(path)
        self._limit = parse_size(limit, name="limit")
        if self._limit < 2 * _END:
            raise ValueError(f"limit {limit!r} is too small for a trace: give at least {2 * _END} bytes")
        self._state = "new"
        self._stop = threading.Event()
        self._lost = 0
        self._written = 0

    def __enter__(self) -> trace:
        if self._state != "new":
            raise ClosedError("this trace was entered before: make a new one for each block")
        self._listening = Listening(get_driver())
        self._file = open(self.path, "wb", buffering=0)
        self._state, self._pid = "open", os.getpid()
        self._listening.begin(sys._getframe(1))
        first = {"umarray": "trace", "version": VERSION, "pid": self._pid, "wall": time.time()}
        quietly(lambda: self._write([{**first, "header": _plain(self._listening.header())}]), None)
        self._thread = threading.Thread(target=self._run, name="umarray-trace", daemon=True)
        self._thread.start()
        atexit.register(self._close)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._state != "open":
            raise ClosedError(f"this trace is not open: it is {self._state}")
        self._close(sys._getframe(1))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a trace cannot be copied or pickled: give its path")

    def _close(self, frame: FrameType | None = None) -> None:
        if self._state != "open" or os.getpid() != self._pid:  # a forked child leaves its parent's file alone
            return
        self._state = "closed"
        atexit.unregister(self._close)
        self._stop.set()
        self._thread.join()
        self._listening.end(frame)
        quietly(self._flush, None)
        header = replace(self._listening.header(), lost=self._listening.lost + self._lost)
        quietly(lambda: self._append({"umarray": "end", "header": _plain(header)}), None)
        self._file.close()

    def _run(self) -> None:
        while not self._stop.wait(_EVERY):
            quietly(self._flush, None)

    def _flush(self) -> None:
        self._write({"at": one.at, "thread": one.thread, **as_plain(one.record)} for one in self._listening.take())

    def _write(self, lines: Any) -> None:
        text = bytearray()
        for line in lines:
            encoded = _line(line)
            if self._written + len(text) + len(encoded) > self._limit - _END:
                self._lost += 1
            else:
                text += encoded
        self._put(text)

    def _append(self, line: Mapping[str, Any]) -> None:
        self._put(_line(line))

    def _put(self, text: bytes | bytearray) -> None:
        view = memoryview(text)
        while view:
            done = self._file.write(view)
            self._written += done or 0
            view = view[done or 0 :]


def read_trace(path: str | os.PathLike[str]) -> Recording:
    """Read what `trace` wrote.

    Raises
    ------
    ValueError
        It is no trace of umarray's, one of a newer version, or one whose header is damaged; the text says which.

    Notes
    -----
    A last line that was cut off is left out, and so are records that this version does not know, or that are damaged.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = _lines(file)
        first = next(lines, None)
        if first is None or first.get("umarray") != "trace":
            raise ValueError(f"{os.fspath(path)!r} is no trace of umarray: its first line does not say so")
        if first.get("version") != VERSION:
            raise ValueError(
                f"{os.fspath(path)!r} is a trace of version {first.get('version')!r}, and this umarray reads "
                f"version {VERSION}: read it with the umarray that wrote it"
            )
        header, records = _header(first, path), []
        for line in lines:
            if line.get("umarray") == "end":
                header = _header(line, path)
                continue
            try:
                records.append(Stamped(float(line["at"]), int(line["thread"]), from_plain(line)))
            except (KeyError, ValueError, TypeError):
                continue
    records.sort(key=lambda one: one.at)
    return Recording(header, tuple(records))


def _lines(file: Any) -> Iterator[dict[str, Any]]:
    for line in file:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":"), default=str).encode() + b"\n"


def _plain(header: Header) -> dict[str, Any]:
    return asdict(header)


_SECONDS = ("fault", "host_fault", "call", "batch")  # costs that may be 0; by the others is divided


def _header(line: Mapping[str, Any], path: str | os.PathLike[str]) -> Header:
    try:
        values = line["header"]
        known = {one.name: values[one.name] for one in fields(Header) if one.name in values}
        known["memory"] = {int(device): int(nbytes) for device, nbytes in known.get("memory", {}).items()}
        known["sources"] = tuple({**about, "sees": tuple(about["sees"])} for about in known.get("sources", ()))
        known["pools"] = tuple({**pool} for pool in known.get("pools", ()))
        header = Header(**known)
        _check(header)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        text = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{os.fspath(path)!r} is a damaged trace of umarray: its header makes no sense ({text})"
        ) from None
    return header


def _check(header: Header) -> None:
    numbers = [header.began, header.began if header.ended is None else header.ended, header.migrates, header.lost]
    for value in numbers:
        float(value + 0)
    for about in header.sources:
        "".join((about["name"], about["exactness"], *about["sees"]))
    for name, cost in header.costs.items():
        if name != "source" and not (cost > 0 or (cost == 0 and name in _SECONDS)):
            raise ValueError(f"{name} costs {cost!r}")
