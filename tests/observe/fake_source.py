"""A source that tells what a test has it tell."""

from __future__ import annotations

from dataclasses import dataclass, field

from umarray import events
from umarray.observe.counters import About, Counts, Taken

ABOUT = About("a fake", "exact", ("device_faults", "bytes_to_device", "addresses"), ("everything else",))


@dataclass
class FakeSession:
    source: FakeSource
    over: bool = False
    taken: list[events.Record] = field(default_factory=list)

    def end(self) -> None:
        self.over = True
        self.source.ended += 1
        if self.source.fails == "end":
            raise RuntimeError("end fails")

    def take(self) -> Taken:
        if self.source.fails == "take":
            raise RuntimeError("take fails")
        records, self.source.told = self.source.told, []
        return Taken(tuple(records), self.source.lost)

    def counts(self) -> Counts:
        if self.source.fails == "counts":
            raise RuntimeError("counts fails")
        return self.source.counted


@dataclass
class FakeSource:
    told: list[events.Record] = field(default_factory=list)
    counted: Counts = Counts(device_faults=3, bytes_to_device=8192)
    about: About = ABOUT
    lost: int = 0
    fails: str = ""
    begun: int = 0
    ended: int = 0

    def begin(self) -> FakeSession:
        self.begun += 1
        if self.fails == "begin":
            raise RuntimeError("begin fails")
        return FakeSession(self)
