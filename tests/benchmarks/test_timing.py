"""Medians, turns, the check that all computed the same, and counts in place of seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from benchmarks import timing as module
from benchmarks.timing import Disagreement, Measured, Stopwatch, Timing, check_same, interleaved
from umarray import events, hipemu
from umarray.places import HOST, Device


@pytest.fixture(autouse=True)
def not_emulated(monkeypatch) -> None:
    """Whatever these tests run on; those of the emulated device say so."""
    monkeypatch.setattr(hipemu, "active", lambda: False)


def test_a_timing_is_the_median_between_its_quartiles():
    timing = Timing.of([5.0, 1.0, 2.0, 4.0, 3.0])
    assert timing == Timing(3.0, 2.0, 4.0, 5)
    assert timing.per(2) == Timing(1.5, 1.0, 2.0, 5)


def test_no_run_is_no_timing():
    with pytest.raises(ValueError, match="no run"):
        Timing.of([])


def test_variants_take_turns_and_each_round_starts_at_another():
    order = []
    variants = {name: lambda name=name: order.append(name) for name in "abc"}
    interleaved(variants, 3, warmup=0)
    assert "".join(order) == "abcbcacab"


def test_warmup_is_not_timed():
    seconds = iter([100.0, 1.0, 2.0, 3.0])
    timing = interleaved({"only": lambda: Measured(next(seconds))}, 3, warmup=1)["only"]
    assert timing == Timing(2.0, 1.5, 2.5, 3)


def test_finish_is_inside_the_timed_span():
    calls = []
    interleaved({"only": lambda: calls.append("run")}, 2, warmup=0, finish=lambda: calls.append("finish"))
    assert calls == ["run", "finish"] * 2


@pytest.mark.parametrize("repetitions", [0, -1])
def test_no_repetition_is_refused(repetitions):
    with pytest.raises(ValueError, match=f"not {repetitions}"):
        interleaved({"only": lambda: None}, repetitions)


@pytest.mark.parametrize(
    "other, told",
    [([1.0, 2.5], "by 0.5"), ([1.0, float("nan")], "by nan"), ([1.0], "shape"), (None, "shape")],
)
def test_another_result_is_a_disagreement(other, told):
    with pytest.raises(Disagreement, match=told):
        interleaved({"good": lambda: np.array([1.0, 2.0]), "bad": lambda: other}, 1, tolerance=0.1)


def test_results_within_the_tolerance_agree():
    check_same({"a": [np.array([1.0, 100.0]), 3], "b": [np.array([1.5, 100.0]), 3]}, tolerance=0.01)
    check_same({"a": None, "b": None})


def test_not_compared_when_told_so():
    assert set(interleaved({"a": lambda: 1, "b": lambda: 2}, 1, tolerance=None)) == {"a", "b"}


def test_a_stopwatch_waits_for_the_device_inside_its_time():
    order: list[str] = []
    with Stopwatch(lambda: order.append("finish")) as watch:
        order.append("work")
    assert order == ["work", "finish"] and watch.seconds > 0
    assert watch.measured(7) == Measured(watch.seconds, 7)


def test_a_stopwatch_does_not_wait_after_an_exception():
    finished: list[int] = []
    with pytest.raises(KeyError), Stopwatch(lambda: finished.append(1)):
        raise KeyError
    assert not finished


@pytest.fixture
def emulated(not_emulated, monkeypatch) -> Iterator[None]:
    """As on the emulated device: three faults happen, and 2 MiB travel, in each block that is counted."""

    @contextmanager
    def counters() -> Iterator[hipemu.Counters]:
        c = hipemu.Counters()
        yield c
        c.by_device = {0: hipemu.PlaceCounters(faults=3, bytes_to_device=2 << 20, modelled_seconds=0.25)}
        c.host = hipemu.PlaceCounters(faults=1)

    class Costs:
        to_device = float(1 << 30)

    monkeypatch.setattr(module.hipemu, "active", lambda: True)
    monkeypatch.setattr(module.hipemu, "counters", counters)
    monkeypatch.setattr(module.history, "costs", Costs)
    yield


def test_on_the_emulated_device_a_stopwatch_counts(emulated):
    with Stopwatch() as watch:
        pass
    assert watch.measured().counts == {
        "device_faults": 3,
        "host_faults": 1,
        "to_device_mib": 2.0,
        "to_host_mib": 0.0,
        "modelled_ms": 250.0,
        "copied_mib": 0.0,
    }


def test_copies_are_counted_and_cost_what_the_bus_costs(emulated):
    before = events.listeners
    with Stopwatch() as watch:
        watch.copied(1 << 29)
        events.emit(events.Copied(1 << 29, HOST, Device(0)))
    assert events.listeners == before  # it listens no longer
    assert watch.counts is not None
    assert (watch.counts["copied_mib"], watch.counts["modelled_ms"]) == (1024, 1250)


def test_other_spans_have_their_own_columns(emulated):
    with Stopwatch() as writing:
        pass
    with Stopwatch() as watch:
        pass
    found = watch.measured(write=writing)
    assert found.more == {"write": writing.seconds} and found.counts is not None
    assert (found.counts["write_host_faults"], found.counts["write_to_host_mib"]) == (1, 0)


def test_counts_are_exact_so_one_round_is_enough():
    calls: list[int] = []

    def variant() -> Measured:
        calls.append(1)
        return Measured(0.1, counts={"device_faults": len(calls)})

    found = interleaved({"only": variant}, 5, warmup=1)["only"]
    assert (len(calls), found.counts, found.repetitions) == (2, {"device_faults": 2}, 1)


def test_a_share_of_a_timing_shares_all_of_it():
    whole = Timing(4.0, 2.0, 6.0, 3, {"write": 8.0}, {"device_faults": 10})
    assert whole.per(2) == Timing(2.0, 1.0, 3.0, 3, {"write": 4.0}, {"device_faults": 5.0})
