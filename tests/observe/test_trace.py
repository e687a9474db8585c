from __future__ import annotations

import copy
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from tests.residency.arrays import managed
from umarray import events, log
from umarray.errors import ClosedError
from umarray.observe.trace import VERSION, read_trace
from umarray.places import HOST

CRASHING = """
import os, sys, time, umarray as um
from umarray import events
with um.trace(sys.argv[1]):
    x = um.zeros(10)
    for index in range(100):
        events.emit(events.Waited(index, "why"))
    deadline = time.monotonic() + 20
    while os.path.getsize(sys.argv[1]) < 5000 and time.monotonic() < deadline:
        time.sleep(0.01)
    {end}
"""


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_written_is_what_a_watch_holds(fake: FakeDriver, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    x = managed(fake)
    with um.watch() as w, um.trace(path), um.prefetch(x, back=HOST):
        with um.pool("1MiB"):
            y = um.zeros(10)
            del y
    found = read_trace(path)
    ours = [type(one.record).__name__ for one in w.recording.records if not isinstance(one.record, events.Named)]
    theirs = [type(one.record).__name__ for one in found.records if not isinstance(one.record, events.Named)]
    assert sorted(ours) == sorted(theirs) and {"Began", "Ended", "Prefetched", "Made", "Gone"} <= set(theirs)
    assert [one.at for one in found.records] == sorted(one.at for one in found.records)
    assert (found.header.driver, found.header.lost) == (fake.name, 0)
    assert found.header.ended is not None and found.header.ended > found.header.began
    assert set(found.header.memory) == {0}


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with um.trace(path):
        events.emit(events.Waited(0.5, "why"))
    first, *between, last = lines(path)
    assert (first["umarray"], first["version"], first["pid"]) == ("trace", VERSION, os.getpid())
    assert first["wall"] > 1e9 and first["header"]["ended"] is None
    waited = [line for line in between if line["type"] == "Waited"]
    assert [(line["seconds"], line["reason"]) for line in waited] == [(0.5, "why")] and waited[0]["thread"]
    assert last["umarray"] == "end" and last["header"]["ended"] is not None


@pytest.mark.parametrize("end", ["os.abort()", "os._exit(3)", "os.kill(os.getpid(), 9)", "raise SystemExit(3)"])
def test_a_crash_leaves_a_readable_file(end: str, tmp_path: Path, repository: Path) -> None:
    path = tmp_path / "trace.jsonl"
    script = CRASHING.format(end=end)
    child = subprocess.run([sys.executable, "-c", script, path], cwd=repository, timeout=60, capture_output=True)
    assert child.returncode != 0
    found = read_trace(path)
    assert sum(isinstance(one.record, events.Waited) for one in found.records) == 100
    assert (found.header.ended is not None) == (end == "raise SystemExit(3)")


def test_a_trace_that_is_open_when_python_ends_is_ended(tmp_path: Path, repository: Path) -> None:
    path = tmp_path / "trace.jsonl"
    script = f"import umarray as um\nt = um.trace({str(path)!r})\nt.__enter__()\nx = um.zeros(10)\n"
    subprocess.run([sys.executable, "-W", "error", "-c", script], cwd=repository, timeout=60, check=True)
    found = read_trace(path)
    assert found.header.ended is not None and any(isinstance(one.record, events.Made) for one in found.records)


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with um.trace(path):
        for index in range(3):
            events.emit(events.Waited(index, "why"))
    text = path.read_bytes()
    for cut in range(len(text.splitlines(keepends=True)[0]), len(text), 7):
        path.write_bytes(text[:cut])
        assert len([one for one in read_trace(path).records if isinstance(one.record, events.Waited)]) <= 3


def test_it_is_bounded_and_says_what_it_left_out(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with um.trace(path, limit="128KiB"):
        for index in range(2000):
            events.emit(events.Waited(index, "why"))
    assert path.stat().st_size <= 128 << 10
    found = read_trace(path)
    kept = sum(isinstance(one.record, events.Waited) for one in found.records)
    assert 0 < kept < 2000 and kept + found.header.lost >= 2000 and found.header.ended is not None


@pytest.mark.parametrize("limit", [1, "64KiB", "nonsense", 0])
def test_a_limit_that_is_none_is_refused(limit: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="limit"):
        um.trace(tmp_path / "trace.jsonl", limit)


def test_a_file_that_cannot_be_made_is_refused_and_nothing_has_begun(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        um.trace(tmp_path / "missing" / "trace.jsonl").__enter__()
    assert not events.listeners


def test_a_full_disk_is_told_once_and_the_program_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    log.forget()
    with caplog.at_level(logging.WARNING, logger="umarray"), um.trace("/dev/full"):
        events.emit(events.Waited(0.5, "why"))
    assert len([one for one in caplog.records if "No space left" in one.getMessage()]) == 1


def test_exceptions_pass(tmp_path: Path) -> None:
    with pytest.raises(KeyError), um.trace(tmp_path / "trace.jsonl"):
        raise KeyError
    assert read_trace(tmp_path / "trace.jsonl").header.ended is not None and not events.listeners


def test_it_is_entered_once_and_left_once(tmp_path: Path) -> None:
    one = um.trace(tmp_path / "trace.jsonl")
    with pytest.raises(ClosedError):
        one.__exit__(None, None, None)
    with one, pytest.raises(ClosedError):
        one.__enter__()
    with pytest.raises(ClosedError):
        one.__exit__(None, None, None)
    with pytest.raises(TypeError, match="path"):
        copy.copy(one)


def test_a_forked_child_leaves_the_file_alone(tmp_path: Path, repository: Path) -> None:
    path = tmp_path / "trace.jsonl"
    script = f"""
import os, sys, umarray as um
with um.trace({str(path)!r}):
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    x = um.zeros(10)
"""
    subprocess.run([sys.executable, "-c", script], cwd=repository, timeout=60, check=True, capture_output=True)
    ends = [line for line in lines(path) if line.get("umarray") == "end"]
    assert len(ends) == 1 and lines(path)[-1] == ends[0]


first = '{"umarray":"trace","version":1,"header":%s}\n'
damaged = (
    *('"text"', "{}", '{"began":null}', '{"began":"soon"}', '{"began":0,"memory":[1]}', '{"began":0,"sources":[1]}'),
    *('{"began":0,"sources":[{}]}', '{"began":0,"pools":[1]}', '{"began":0,"costs":{"fault":"much"}}'),
    *('{"began":0,"costs":{"to_device":0}}', '{"began":0}}\n{"umarray":"end"'),
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no trace of umarray"),
        ("hello\n", "no trace of umarray"),
        ("[1]\n", "no trace of umarray"),
        ('{"umarray":"trace","version":99,"header":{}}\n', "version 99"),
        ("[" * 100_000 + "\n", "no trace of umarray"),
        *((first % header, "damaged.*header") for header in damaged),
    ],
)
def test_what_is_no_trace_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_trace(tmp_path / "t")


def test_damaged_records_are_left_out(tmp_path: Path) -> None:
    records = (
        {"type": "Gone", "address": "x", "nbytes": 1},
        {"type": "Made", "address": 4096, "nbytes": None, "line": "a.py:1"},
        {"type": "Made", "address": 4096, "nbytes": 1, "line": 3},
        {"type": "Named", "name": "x", "address": 0, "nbytes": 1, "shape": ["x"], "dtype": "f4"},
        {"type": "Began", "serial": 1, "action": "prefetch", "label": "", "line": "", "arrays": [[1]]},
        {"type": "Began", "serial": 1, "action": "prefetch", "label": "", "line": "", "arrays": [["x", 1, [1], "f4"]]},
        {"type": "Waited", "seconds": 0.5, "reason": "kept"},
    )
    path = tmp_path / "trace.jsonl"
    path.write_text(
        first % '{"began":0}' + "".join(json.dumps({"at": 1, "thread": 0, **one}) + "\n" for one in records)
    )
    assert [one.record for one in read_trace(path).records] == [events.Waited(0.5, "kept")]


def test_records_of_a_newer_version_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with um.trace(path):
        events.emit(events.Waited(0.5, "why"))
    first, *rest = path.read_text().splitlines(keepends=True)
    path.write_text(first + '{"at":1,"thread":0,"type":"Telepathy"}\n{"at":1}\n' + "".join(rest))
    assert any(isinstance(one.record, events.Waited) for one in read_trace(path).records)
