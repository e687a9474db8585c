"""Everything that can be heard from one moment to another: events, blocks and the sources' effects, in one place.

What watches and traces have in common. Failures of sources are told once and end there: who observes breaks nothing.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from threading import get_ident
from time import perf_counter
from types import FrameType
from typing import Any

from umarray import events
from umarray.drivers.base import Driver, Mode
from umarray.lines import called
from umarray.log import warn_once
from umarray.memory import PoolStatistics, current, watched
from umarray.observe import counters
from umarray.observe.counters import About, Counts, Session, Source
from umarray.observe.model import costs_of
from umarray.observe.names import look
from umarray.observe.recording import Header, Stamped
from umarray.observe.tally import Tally
from umarray.places import Device

MOST = 100_000
"""Records that are kept of each kind (events, blocks) until they are taken."""


class Listening:
    """One interval.

    Parameters
    ----------
    driver : Driver
        The process's.
    sources : sequence of Source, optional
        Who tells of effects; by default whatever can tell here.

    Notes
    -----
    Begun and ended in one thread; hears all of them. One thread at a time takes.
    """

    def __init__(self, driver: Driver, sources: Sequence[Source] | None = None) -> None:
        self.driver = driver
        self.tally = Tally()
        self.blocks = watched.BlockLog(MOST)
        self.lost = 0
        self.began = self.ended = 0.0
        self._lock = threading.Lock()
        self._heard: deque[Stamped] = deque(maxlen=MOST)
        self._given = sources
        self.reasons: tuple[str, ...] = ()
        self._sessions: list[tuple[About, Session]] = []
        self._undo: list[Callable[[], None]] = []
        self._pools: tuple[PoolStatistics, ...] = ()

    def begin(self, frame: FrameType | None = None) -> None:
        """Listen from now on; the interval begins when this returns. `frame` is where to look for names of arrays."""
        at, known = perf_counter(), quietly(_known_blocks, [])
        if frame is not None:
            self.name(frame)
        if self._given is None:
            found = counters.sources(self.driver)
            self._given, self.reasons = found.sources, found.reasons
        for source in self._given:
            session = quietly(lambda source=source: (source.about, source.begin()), None)  # type: ignore[misc]
            if session is not None:
                self._sessions.append(session)
        self.blocks.open()
        self._undo.append(self.blocks.close)
        entry = current.track_here()
        if entry is not None:
            self._undo.append(entry.leave)
        self._undo.append(events.listen(self.hear))
        self.began = perf_counter()
        self._heard.extend(Stamped(at, 0, one) for one in known)

    def end(self, frame: FrameType | None = None) -> None:
        """Listen no more; the interval ends when this is called. Waits for no device.

        `frame` is where to look for names of arrays.
        """
        self.ended = perf_counter()
        if frame is not None:
            self.name(frame)
        quietly(self.blocks.settle, None)  # while the log is open: a closed one is told nothing
        while self._undo:
            quietly(self._undo.pop(), None)
        for _, session in self._sessions:
            quietly(session.end, None)
        self._pools = quietly(lambda: tuple(pool.statistics() for pool in current.pools_at_hand()), ())

    def hear(self, record: events.Record) -> None:
        """Take a record in."""
        stamped = Stamped(perf_counter(), get_ident(), record)
        with self._lock:
            self.tally.add(record)
            self.lost += len(self._heard) == MOST
            self._heard.append(stamped)

    def name(self, frame: FrameType) -> None:
        """Take in what arrays are called in a frame and its callers."""
        for named in quietly(lambda: look(frame), ()):
            self.hear(named)

    def take(self) -> list[Stamped]:
        """The records since the last time, in order of time."""
        with self._lock:
            found = list(self._heard)
            self._heard.clear()
        if not self.ended:
            quietly(self.blocks.settle, None)
        happened, lost = self.blocks.take()
        found += [Stamped(one.at, 0, _block(one)) for one in happened]
        for _, session in self._sessions:
            taken = quietly(session.take, counters.Taken())
            lost += taken.lost
            found += [Stamped(getattr(record, "start", 0.0), 0, record) for record in taken.records]
        self.lost += lost
        found.sort(key=lambda one: one.at)
        return found

    def counts(self) -> Counts:
        """What moved; each figure from the first source that sees it."""
        found = Counts()
        for _, session in self._sessions:
            found = found.or_else(quietly(session.counts, Counts()))
        return found

    def about(self) -> tuple[About, ...]:
        """Who tells of effects."""
        return tuple(about for about, _ in self._sessions)

    def header(self) -> Header:
        """What is known of it as a whole."""
        driver = self.driver
        devices = range(0 if driver.mode is Mode.HOST else driver.device_count())
        migrates = quietly(self._page_that_migrates, driver.page_size)
        return Header(
            began=self.began,
            ended=self.ended or None,
            driver=driver.name,
            mode=driver.mode.value,
            page=driver.page_size,
            migrates=migrates,
            memory=quietly(lambda: {one: driver.memory_info(Device(one)).total for one in devices}, {}),
            sources=tuple(asdict(about) for about in self.about()),
            lost=self.lost,
            costs=quietly(lambda: costs_of(driver), {}),
            pools=tuple(one.as_dict() for one in self._pools),
        )

    def _page_that_migrates(self) -> int:
        pages = [session.page for _, session in self._sessions if hasattr(session, "page")]
        return pages[0] if pages else self.driver.page_size


def quietly(call: Callable[[], Any], otherwise: Any) -> Any:
    """What `call` returns; where it raises, that is told once, and it is `otherwise`."""
    try:
        return call()
    except Exception as error:
        warn_once("what was watched is incomplete", error=error, about=type(error).__name__)
        return otherwise


def _block(one: watched.Happened) -> events.Record:
    if one.gone:
        return events.Gone(one.address, one.nbytes)
    return events.Made(one.address, one.nbytes, called(f"{one.line[0]}:{one.line[1]}"))


def _known_blocks() -> list[events.Record]:
    """The blocks of pools that tracked already, so that what happens to them is told of the line that made them."""
    pools = [pool for pool in current.pools_at_hand() if pool.tracking]
    return [events.Made(one.address, one.nbytes, called(one.line)) for pool in pools for one in pool.tracker.blocks()]
