"""Medians with their spread of variants that take turns, and a check that all of them computed the same.

On the emulated device the same variants give counts in place of seconds: faults, bytes and modelled time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import Any

import numpy as np

from umarray import events, hipemu
from umarray.hipemu import history

_OF_OTHERS = ("host_faults", "to_host_mib")


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated runs: the median, and the quartiles on both sides of it."""

    median: float
    low: float
    high: float
    repetitions: int
    more: Mapping[str, float] = field(default_factory=dict)
    """Medians of other spans that the runs timed, in seconds, by name."""
    counts: Mapping[str, float] | None = None
    """On the emulated device: what the last run made happen there."""

    @classmethod
    def of(cls, seconds: Sequence[float], **other: Any) -> Timing:
        """The timing of at least one run; `other` are the fields that are no seconds of it."""
        if not seconds:
            raise ValueError("no run was timed")
        low, high = np.quantile(seconds, [0.25, 0.75])
        return cls(statistics.median(seconds), float(low), float(high), len(seconds), **other)

    def per(self, count: float) -> Timing:
        """The timing of one of `count` things that each run did."""
        more = {name: seconds / count for name, seconds in self.more.items()}
        counts = self.counts and {name: value / count for name, value in self.counts.items()}
        return Timing(self.median / count, self.low / count, self.high / count, self.repetitions, more, counts)


@dataclass(frozen=True)
class Measured:
    """What a variant returns that did its own timing: the seconds that count, and its result."""

    seconds: float
    result: Any = None
    more: Mapping[str, float] = field(default_factory=dict)
    """Seconds of other spans, by name."""
    counts: Mapping[str, float] | None = None


class Disagreement(AssertionError):
    """Variants that should compute the same did not."""


class Stopwatch:
    """Times a block, the end of a device's work included; on the emulated device it counts too.

    Parameters
    ----------
    finish : callable, optional
        Called at the end of the block, inside the time, to wait for a device.

    Examples
    --------
    >>> from benchmarks.timing import Stopwatch
    >>> with Stopwatch() as watch:
    ...     total = sum(range(10))
    >>> watch.measured(total).result
    45
    """

    def __init__(self, finish: Callable[[], object] | None = None) -> None:
        self._finish = finish
        self._copied = 0
        self._deaf: Callable[[], None] = lambda: None
        self._counting: AbstractContextManager[hipemu.Counters] | None = None
        self.seconds = 0.0
        self.counts: dict[str, float] | None = None

    def __enter__(self) -> Stopwatch:
        if hipemu.active():
            self._counting = hipemu.counters()
            self._counters = self._counting.__enter__()
            self._deaf = events.listen(self._hear)
        self._start = perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None and self._finish is not None:
            self._finish()
        self.seconds = perf_counter() - self._start
        if self._counting is not None:
            self._deaf()
            self._counting.__exit__(kind, error, tb)
            self.counts = counts_of(self._counters) | {"copied_mib": self._copied / 2**20}
            self.counts["modelled_ms"] += self._copied / history.costs().to_device * 1e3

    def copied(self, nbytes: int) -> None:
        """So many bytes were copied by hand; the emulated device counts pages, and umarray tells of its own copies."""
        self._copied += nbytes

    def measured(self, result: Any = None, **others: Stopwatch) -> Measured:
        """What a variant returns: this time and these counts, the result, and those of other spans of the run."""
        more = {name: other.seconds for name, other in others.items()}
        counts = self.counts
        for name, other in others.items():
            if counts is not None and other.counts is not None:
                counts = counts | {f"{name}_{column}": other.counts[column] for column in _OF_OTHERS}
        return Measured(self.seconds, result, more, counts)

    def _hear(self, record: events.Record) -> None:
        if isinstance(record, events.Copied):
            self._copied += record.nbytes


def counts_of(c: hipemu.Counters) -> dict[str, float]:
    """Columns of a row: faults, bytes in MiB, modelled milliseconds."""
    return {
        "device_faults": c.device_faults,
        "host_faults": c.host_faults,
        "to_device_mib": c.bytes_to_device / 2**20,
        "to_host_mib": c.bytes_to_host / 2**20,
        "modelled_ms": c.modelled_seconds * 1e3,
    }


def interleaved(
    variants: Mapping[str, Callable[[], Any]],
    repetitions: int,
    *,
    warmup: int = 1,
    finish: Callable[[], object] | None = None,
    tolerance: float | None = 0.0,
) -> dict[str, Timing]:
    """Time each variant, taking turns, so that a drift of the machine falls on all of them alike.

    Parameters
    ----------
    variants : mapping of str to callable
        Called without arguments; a `Measured` carries its own time, anything else is a result.
    repetitions, warmup : int
        Timed rounds, and rounds before them. Each round starts at another variant.
    finish : callable, optional
        Called inside the timed span, to wait for a device.
    tolerance : float or None
        How far results may differ from the first variant's, relative to its largest value. None: not compared, for
        variants that compute nothing.

    Raises
    ------
    Disagreement
        Results differ; the text names the variant and by how much.
    """
    if repetitions < 1:
        raise ValueError(f"repetitions must be 1 or more, not {repetitions!r}")
    names = list(variants)
    runs: dict[str, list[Measured]] = {name: [] for name in names}
    for turn in range(-warmup, repetitions):
        results = {}
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            run = _run(variants[name], finish)
            if turn >= 0:
                runs[name].append(run)
            results[name] = run.result
        if tolerance is not None:
            check_same({name: results[name] for name in names}, tolerance)
        if turn >= 0 and all(runs[name][-1].counts is not None for name in names):
            break  # counts are exact: once is enough
    return {name: _summary(measured) for name, measured in runs.items()}


def _run(variant: Callable[[], Any], finish: Callable[[], object] | None) -> Measured:
    start = perf_counter()
    result = variant()
    if finish is not None:
        finish()
    spent = perf_counter() - start
    return result if isinstance(result, Measured) else Measured(spent, result)


def _summary(runs: Sequence[Measured]) -> Timing:
    more = {name: statistics.median(run.more[name] for run in runs) for name in runs[-1].more}
    return Timing.of([run.seconds for run in runs], more=more, counts=runs[-1].counts)


def check_same(results: Mapping[str, Any], tolerance: float = 0.0) -> None:
    """Raise `Disagreement` unless every result equals the first, to `tolerance` relative to its largest value."""
    (first, expected), *others = ((name, _numpy(result)) for name, result in results.items())
    for name, result in others:
        if result.shape != expected.shape:
            raise Disagreement(f"{name} gave shape {result.shape}, {first} {expected.shape}")
        if result.size == 0 or np.array_equal(result, expected):
            continue
        difference = float(np.max(np.abs(result - expected)))
        largest = float(np.max(np.abs(expected)))
        if not difference <= tolerance * largest:  # so written, NaN is a disagreement
            raise Disagreement(f"{name} differs from {first} by {difference:g}, where the largest value is {largest:g}")


def _numpy(result: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """A result as one flat array; None, from variants without one, as an empty one."""
    if result is None:
        return np.empty(0)
    if isinstance(result, (tuple, list)):
        return np.concatenate([np.ravel(_numpy(one)) for one in result])
    return np.asarray(result.get() if type(result).__module__.startswith("cupy") else result, dtype=np.float64)
