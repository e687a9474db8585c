"""What a pipeline did and what it cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, TypeAlias, final

from umarray import events, html
from umarray.drivers.base import Driver, Event
from umarray.sizes import format_size

STAGES = ("source", "prep", "transfer", "compute", "out", "back")
"""Taking an item from the source; preparation; the way to the device; compute; results to the host; slots home."""

_ALWAYS = ("source", "prep", "transfer", "compute")


def slowest(stages: Mapping[str, float], workers: int) -> float:
    """Seconds a step at best, every stage overlapping every other: the slowest stage's.

    Notes
    -----
    The source is read by one worker at a time, which then prepares: n workers need (source + preparation) / n.
    """
    source = stages.get("source", 0.0)
    others = [seconds for stage, seconds in stages.items() if stage not in ("source", "prep")]
    return max(source, (source + stages.get("prep", 0.0)) / workers, *others)


@final
@dataclass(frozen=True)
class Report(html.Shown):
    """What a pipeline has done so far; all its iterations taken together."""

    steps: int
    """Batches that were handed out."""
    step: float
    """Mean seconds from the end of one batch's compute to the end of the next one's; 0.0 before there are two."""
    stages: Mapping[str, float]
    """Mean seconds a step of each stage, as it ran beside the others, over the same batches as `step`: all but the
    first of each iteration, where kernels are compiled; of short steps, those that were timed. Where `compute` was not
    given, it is the time from handing out a batch to asking for the next."""
    ideal: float
    """Seconds a step if everything overlapped: the slowest stage. Measured alone where `Pipeline.ideal` was called,
    else as it ran here, which may be slower than alone."""
    ideal_measured: bool
    """Whether `ideal` rests on stages that were run alone."""
    overlap_efficiency: float
    """`ideal` over `step`; 1.0 is perfect, 0.0 before there are two steps."""
    transport: str
    reason: str
    """Why this transport."""
    bytes_moved: int
    """Bytes that the transport asked to be copied or migrated, both ways."""
    slot_bytes: int
    """Bytes of all slots together, pinned and device memory both counted."""
    slots: int
    workers: int
    """Threads that prepare; 0 where the caller's thread does."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "stages": dict(self.stages)}

    def __str__(self) -> str:
        lines = [
            f"pipeline: {self.steps} steps, {self.step * 1e3:.3f} ms a step, ideal {self.ideal * 1e3:.3f} ms"
            f" ({'stages alone' if self.ideal_measured else 'stages as they ran'}),"
            f" overlap efficiency {self.overlap_efficiency:.0%}",
            f"  transport {self.transport}: {self.reason}",
            f"  {self.slots} slots, {format_size(self.slot_bytes)} in all; {format_size(self.bytes_moved)} moved;"
            f" workers: {self.workers}",
        ]
        lines += [f"  {stage:<9}{seconds * 1e3:10.3f} ms a step" for stage, seconds in self.stages.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        alone = "the slowest stage, " + ("run alone" if self.ideal_measured else "as it ran beside the others")
        rows = [
            ("step", f"{self.step * 1e3:.3f} ms, the mean of {self.steps:,} steps"),
            ("ideal step", f"{self.ideal * 1e3:.3f} ms: {alone}"),
            ("overlap efficiency", f"{self.overlap_efficiency:.0%}, the ideal step over the step"),
            ("transport", f"{self.transport}: {self.reason}"),
            ("moved", format_size(self.bytes_moved)),
            ("slots", f"{self.slots}, {format_size(self.slot_bytes)} in all; workers: {self.workers}"),
        ]
        stages = [(stage, f"{seconds * 1e3:.3f}") for stage, seconds in self.stages.items()]
        return html.page("pipeline", html.pairs(rows), html.table(("stage", "ms a step"), stages))


_Entry: TypeAlias = tuple[str, int, Any, Any, int]

SPARSE = 16
"""Of so many batches one is timed on the device where steps are short: two timed events cost 10 us a batch."""


@dataclass(slots=True)
class _Sum:
    seconds: float = 0.0
    batches: int = 0

    def add(self, seconds: float, batches: int) -> None:
        self.seconds += seconds
        self.batches += batches


@final
class Clock:
    """Adds up the stages' times; each ends up as an `events.StageRan`.

    Attributes
    ----------
    sparse : bool
        Steps are so short that only some batches are timed on the device.

    Notes
    -----
    Any thread may add; one thread at a time settles. Times of a device's stages come from events of its streams, which
    are read once they are done: nothing waits.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._host: deque[_Entry] = deque()
        self._device: deque[_Entry] = deque()
        self._later = {stage: _Sum() for stage in _ALWAYS}
        self._opening: dict[str, _Sum] = {}  # the first batches of iterations
        self._anchor: tuple[Event, float] | None = None
        self._first: tuple[Event, int] | None = None
        self._last: tuple[Event, int] | None = None
        self._span = 0.0
        self._intervals = 0
        self._lap: tuple[float, int, dict[str, tuple[float, int]]] = (0.0, 0, {})
        self.sparse = False
        self.steps = 0
        self.alone: dict[str, float] | None = None

    def anchor(self, event: Event, at: float) -> None:
        """Tie the device's clock to the host's: `event`, timed and done, was at `at` of `time.perf_counter`."""
        self._anchor = (event, at)

    def times(self, index: int, batches: int = 1) -> bool:
        """Whether the batches from `index` on are to be timed on the device."""
        return not self.sparse or index < 2 or -index % SPARSE < batches or bool(events.listeners)

    def ran(self, stage: str, index: int, start: float, end: float) -> None:
        """A stage ran on the host; an index below 0 counts for nothing."""
        if index >= 0:
            self._host.append((stage, index, start, end, 1))

    def queued(self, stage: str, index: int, start: Event, end: Event, batches: int = 1) -> None:
        """A stage of one or more batches was queued on the device between two timed events.

        An index below 0 counts for nothing.
        """
        if index >= 0:
            self._device.append((stage, index, start, end, batches))

    def passed(self) -> None:
        """The compute of a batch was queued that is not timed."""
        self.steps += 1

    def settle(self) -> None:
        """Add up what is done by now."""
        while self._host:
            stage, index, start, end, _ = self._host.popleft()
            self._add(stage, index, end - start, 1)
            if events.listeners:
                events.emit(events.StageRan(stage, index, start, end))
        # Both: a compute that leaves another stream as the current one ends on one and began on another.
        while self._device and self._device[0][3].done() and self._device[0][2].done():
            stage, index, start, end, batches = self._device.popleft()
            seconds = max(self._driver.elapsed(start, end), 0.0)
            self._add(stage, index, seconds, batches)
            if stage == "compute":
                self._first, self._last = self._first or (end, index), (end, index)
                self.steps += 1
            if events.listeners and self._anchor is not None:
                began = self._anchor[1] + self._driver.elapsed(self._anchor[0], start)
                for number in range(batches):
                    events.emit(events.StageRan(stage, index + number, began, began + seconds))

    def finish(self) -> None:
        """An iteration has ended: settle all of it, waiting for the device, and begin a new span."""
        self.wait()
        self._span, self._intervals = self._so_far()
        self._first = self._last = None

    def wait(self) -> None:
        """Settle all, waiting for the device."""
        for entry in tuple(self._device):
            entry[3].wait()
            entry[2].wait()
        self.settle()

    def lap(self) -> tuple[int, float, Mapping[str, float]]:
        """Steps, seconds a step and a stage since the last call; after `finish`."""
        before, self._lap = (
            self._lap,
            (self._span, self._intervals, {s: (v.seconds, v.batches) for s, v in self._later.items()}),
        )
        intervals = self._intervals - before[1]
        stages = {}
        for stage, total in self._later.items():
            seconds, batches = before[2].get(stage, (0.0, 0))
            stages[stage] = (total.seconds - seconds) / max(total.batches - batches, 1)
        return intervals, (self._span - before[0]) / intervals if intervals else 0.0, stages

    def _add(self, stage: str, index: int, seconds: float, batches: int) -> None:
        (self._later if index else self._opening).setdefault(stage, _Sum()).add(seconds, batches)

    def _so_far(self) -> tuple[float, int]:
        if self._first is None or self._last is None:
            return self._span, self._intervals
        (first, begun), (last, ended) = self._first, self._last
        return self._span + self._driver.elapsed(first, last), self._intervals + ended - begun

    def step(self) -> float:
        """Mean seconds between the ends of two batches' compute; 0.0 before there are two."""
        span, intervals = self._so_far()
        return span / intervals if intervals else 0.0

    def stages(self) -> Mapping[str, float]:
        """Mean seconds a step of each stage that ran, in the order of `STAGES`."""
        sums = {}
        for stage in STAGES:
            later, opening = self._later.get(stage), self._opening.get(stage)
            # Where single batches are all there is, these have to do.
            found = opening if opening is not None and (later is None or not later.batches) else later
            if found is not None:
                sums[stage] = found.seconds / max(found.batches, 1)
        return MappingProxyType(sums)
