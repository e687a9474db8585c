"""What a pipeline did and what it cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, TypeAlias, final

from umarray import events
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
class Report:
    """What a pipeline has done so far; all its iterations taken together."""

    steps: int
    """Batches that were handed out."""
    step: float
    """Mean seconds from the end of one batch's compute to the end of the next one's; 0.0 before there are two."""
    stages: Mapping[str, float]
    """Mean seconds a step of each stage, as it ran beside the others, over the same batches as `step`: all but the
    first of each iteration, where kernels are compiled. Where `compute` was not given, it is the time from handing out
    a batch to asking for the next."""
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


_Entry: TypeAlias = tuple[str, int, Any, Any]


@final
class Clock:
    """Adds up the stages' times; each ends up as an `events.StageRan`.

    Notes
    -----
    Any thread may add; one thread at a time settles. Times of a device's stages come from events of its streams, which
    are read once they are done: nothing waits.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._host: deque[_Entry] = deque()
        self._device: deque[_Entry] = deque()
        self._seconds = dict.fromkeys(_ALWAYS, 0.0)
        self._opening = dict.fromkeys(STAGES, 0.0)  # the part of it that the first batches of iterations took
        self._openings = 0
        self._anchor: tuple[Event, float] | None = None
        self._first: Event | None = None
        self._last: Event | None = None
        self._ends = 0
        self._span = 0.0
        self._intervals = 0
        self.steps = 0
        self.alone: dict[str, float] | None = None

    def anchor(self, event: Event, at: float) -> None:
        """Tie the device's clock to the host's: `event`, timed and done, was at `at` of `time.perf_counter`."""
        self._anchor = (event, at)

    def ran(self, stage: str, index: int, start: float, end: float) -> None:
        """A stage ran on the host; an index below 0 counts for nothing."""
        if index >= 0:
            self._host.append((stage, index, start, end))

    def queued(self, stage: str, index: int, start: Event, end: Event) -> None:
        """A stage was queued on the device between two timed events; an index below 0 counts for nothing."""
        if index >= 0:
            self._device.append((stage, index, start, end))

    def settle(self) -> None:
        """Add up what is done by now."""
        while self._host:
            stage, index, start, end = self._host.popleft()
            self._add(stage, index, end - start)
            if events.listeners:
                events.emit(events.StageRan(stage, index, start, end))
        while self._device and self._device[0][3].done():
            stage, index, start, end = self._device.popleft()
            seconds = self._driver.elapsed(start, end)
            self._add(stage, index, seconds)
            if stage == "compute":
                self._openings += index == 0
                self._first, self._last = self._first or end, end
                self._ends += 1
                self.steps += 1
            if events.listeners and self._anchor is not None:
                began = self._anchor[1] + self._driver.elapsed(self._anchor[0], start)
                events.emit(events.StageRan(stage, index, began, began + seconds))

    def finish(self) -> None:
        """An iteration has ended: settle all of it, waiting for the device, and begin a new span."""
        self.wait()
        self._span, self._intervals = self._so_far()
        self._first = self._last = None
        self._ends = 0

    def wait(self) -> None:
        """Settle all, waiting for the device."""
        for entry in tuple(self._device):
            entry[3].wait()
        self.settle()

    def _add(self, stage: str, index: int, seconds: float) -> None:
        self._seconds[stage] = self._seconds.get(stage, 0.0) + seconds
        if index == 0:
            self._opening[stage] += seconds

    def _so_far(self) -> tuple[float, int]:
        if self._first is None or self._last is None:
            return self._span, self._intervals
        return self._span + self._driver.elapsed(self._first, self._last), self._intervals + self._ends - 1

    def step(self) -> float:
        """Mean seconds between the ends of two batches' compute; 0.0 before there are two."""
        span, intervals = self._so_far()
        return span / intervals if intervals else 0.0

    def stages(self) -> Mapping[str, float]:
        """Mean seconds a step of each stage that ran, in the order of `STAGES`."""
        later = self.steps - self._openings
        if later <= 0:  # single batches are all there is
            return MappingProxyType({s: self._seconds[s] / max(self.steps, 1) for s in STAGES if s in self._seconds})
        return MappingProxyType(
            {s: (self._seconds[s] - self._opening[s]) / later for s in STAGES if s in self._seconds}
        )
