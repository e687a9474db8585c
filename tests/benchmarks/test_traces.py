"""The traces are what they say, and driver calls are counted where the runtime is called."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import traces
from benchmarks.traces import TRACES, Spy, peaks, play


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_the_same_each_time(name: str) -> None:
    assert TRACES[name](True) == TRACES[name](True)


def test_a_growing_buffer_grows_and_all_of_it_is_freed() -> None:
    trace = TRACES["growing"](True)
    large = [nbytes for _, nbytes in trace if nbytes >= 1 << 16]
    assert large == sorted(large) and len(set(large)) == len(large)
    alive: dict[int, int] = {}
    for slot, nbytes in trace:
        alive[slot] = nbytes
    assert not any(alive.values())


def test_peaks_are_of_rounded_blocks_of_all_streams_and_of_each() -> None:
    trace = [(0, 1), (1, 513), (0, 0), (1, 0), (2, 512)]  # streams 0, 1, 0, 1, 0
    assert peaks(trace, 1) == (1536, 1536)
    assert peaks(trace, 2) == (1536, 512 + 1024)


def test_a_trace_is_played_on_the_streams_in_turn() -> None:
    used: list[str] = []
    streams = [SimpleNamespace(use=lambda name=name: used.append(name)) for name in "ab"]
    asked: list[int] = []
    play(lambda nbytes: asked.append(nbytes) or object(), [(0, 8), (1, 16), (0, 0)], streams)
    assert (used, asked) == (["a", "b", "a"], [8, 16])


def test_a_spy_counts_while_it_watches_and_takes_itself_off(monkeypatch: Any) -> None:
    runtime = SimpleNamespace(malloc=lambda nbytes: nbytes, mallocManaged=lambda nbytes, flag: flag)
    before = dict(vars(runtime))
    monkeypatch.setattr(traces, "get_driver", lambda: SimpleNamespace(runtime=runtime))
    spy = Spy()
    with spy.watching():
        assert (runtime.malloc(3), runtime.mallocManaged(3, 1)) == (3, 1)
    runtime.malloc(3)
    assert spy.count == 2 and vars(runtime) == before
