"""Which advice stands on which page runs, and who asked: for each kind of advice, runs with a stack of askers.

A scope that enters puts its value on top of the stacks of its pages; one that exits takes it away wherever it lies, and
what is then on top is what the driver is told. Below the stack lies what stood before the first scope came: read from
the runtime where it can be read, else unknown, and then a scope that leaves last counts it as not restored.

The runs of one kind of advice are sorted, do not overlap, and are replaced as a whole list, so readers need no lock.
All changes are made in turns (turns.py), which is what keeps two threads' driver calls in the order of their decisions.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from umarray import events
from umarray.drivers.base import Advice, Attribute, Driver, Outcome
from umarray.errors import DriverError
from umarray.log import warn_once
from umarray.places import Device, Place
from umarray.residency.spans import Range
from umarray.residency.tally import Tally
from umarray.residency.turns import Turns

Value: TypeAlias = Place | bool
"""What one kind of advice says of a page: a place for the preferred location, True, or False for nothing."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing that can be advised; `place` is who accesses, for accessed-by, else None."""

    advice: Advice
    place: Place | None = None

    @property
    def attribute(self) -> Attribute:
        return Attribute[self.advice.name]


@dataclass(frozen=True, slots=True)
class Standing:
    """Advice that stands on some of the pages asked about, because scopes that are open asked for it."""

    advice: str
    place: Place | None
    nbytes: int


class _Run(NamedTuple):  # one is made for each range of a scope, of which there may be thousands
    start: int
    stop: int
    before: Value | None  # None: could not be read
    stack: tuple[tuple[int, Value], ...] = ()

    @property
    def value(self) -> Value | None:
        return self.stack[-1][1] if self.stack else self.before

    def with_stack(self, stack: tuple[tuple[int, Value], ...]) -> _Run:
        """The same pages with other askers."""
        return _Run(self.start, self.stop, self.before, stack)


_start, _stop = attrgetter("start"), attrgetter("stop")


@dataclass(slots=True)
class _Request:
    token: int
    tally: Tally
    error: BaseException | None = None


class Ledger:
    """The advice of one driver's process.

    Notes
    -----
    Safe from any thread. `leave` never waits for another thread and never raises.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._runs: dict[Topic, list[_Run]] = {}
        self._topics: dict[int, list[Topic]] = {}  # what each token asked, in order
        self._turns = Turns()
        self._records: deque[events.Record] = deque()  # what happened in turns, told outside of them
        self._tokens = itertools.count(1)

    def enter(self, wishes: Iterable[tuple[Topic, Value]], ranges: list[Range], tally: Tally) -> int:
        """Ask for advice on page ranges; the token takes it back.

        Raises
        ------
        DriverError
            A call failed; what was asked before it has been taken back.
        """
        request, wanted = _Request(next(self._tokens), tally), list(wishes)

        def carry_out() -> None:
            try:
                for topic, value in wanted:
                    self._push(request, topic, ranges, value)
            except BaseException as error:
                request.error = error
                self._pop(request)

        self._turns.submit(carry_out, wait=True)
        self._tell()
        if request.error is not None:
            raise request.error
        return request.token

    def leave(self, token: int, tally: Tally, keep: object = None) -> None:
        """Take back what `token` asked for; `keep` (the arrays) stays alive until that is done."""
        request = _Request(token, tally)

        def carry_out() -> None:
            nonlocal keep
            self._pop(request)
            keep = None

        self._turns.submit(carry_out, wait=False)
        self._tell()

    def standing(self, ranges: list[Range]) -> tuple[Standing, ...]:
        """The advice that open scopes keep on page ranges, and on how many bytes of them."""
        found: dict[tuple[str, Place | None], int] = {}
        for topic, runs in list(self._runs.items()):
            for run in runs:
                value = run.value
                nbytes = sum(max(0, min(stop, run.stop) - max(start, run.start)) for start, stop in ranges)
                if nbytes and value is not None and value is not False:
                    place = topic.place if isinstance(value, bool) else value
                    key = (topic.advice.name.lower(), place)
                    found[key] = found.get(key, 0) + nbytes
        return tuple(Standing(advice, place, nbytes) for (advice, place), nbytes in found.items())

    @property
    def empty(self) -> bool:
        """Whether no scope keeps advice anywhere."""
        return not any(self._runs.values())

    def _tell(self) -> None:
        while self._records:
            with suppress(IndexError):  # another thread was faster
                events.emit(self._records.popleft())

    # Only in a turn, from here on

    def _push(self, request: _Request, topic: Topic, ranges: list[Range], value: Value) -> None:
        """Put `value` on the stacks of ranges, after telling the driver where that changes what is said."""
        self._topics.setdefault(request.token, []).append(topic)
        runs = list(self._runs.get(topic, ()))
        try:
            for start, stop in ranges:
                self._push_one(request, topic, runs, start, stop, value)
        finally:
            self._runs[topic] = runs

    def _push_one(self, request: _Request, topic: Topic, runs: list[_Run], start: int, stop: int, value: Value) -> None:
        """`_push` for one range, into `runs`, of which only those that it meets are looked at."""
        if start >= stop:
            return
        first = bisect_right(runs, start, key=_stop)
        last = bisect_left(runs, stop, first, key=_start)
        met = runs[first:last]
        pieces = list(self._pieces(topic, met, start, stop))
        pushed: list[_Run] = []
        entry = (request.token, value)
        try:
            for changing, group in itertools.groupby(pieces, key=lambda piece: piece.value != value):
                batch = list(group)
                low, high = batch[0].start, batch[-1].stop
                if changing and not self._call(request, topic, low, high, batch[0].value, value):
                    request.tally.unsupported += 1
                    pushed += batch
                else:
                    request.tally.asked += 1
                    request.tally.bytes += high - low
                    pushed += [one.with_stack((*one.stack, entry)) for one in batch]
        finally:
            pushed += pieces[len(pushed) :]  # those that an exception left out
            outside = [cut for run in met for cut in _without(run, start, stop)]
            left, right = runs[first - 1 : first] if first else [], runs[last : last + 1]  # they may say the same
            joined = _joined([*left, *outside, *(one for one in pushed if one.stack), *right])
            runs[first - len(left) : last + len(right)] = joined

    def _pop(self, request: _Request) -> None:
        """Take the token's values away, newest topic first, and tell the driver where that changes what is said."""
        for topic in reversed(dict.fromkeys(self._topics.pop(request.token, []))):
            left: list[_Run] = []
            changes: list[tuple[_Run, Value, bool]] = []
            for run in self._runs[topic]:
                stack = tuple(entry for entry in run.stack if entry[0] != request.token)
                after = run if len(stack) == len(run.stack) else run.with_stack(stack)
                if stack:
                    left.append(after)
                known = after.value is not None
                if stack != run.stack and (not known or after.value != run.value):
                    changes.append((run, after.value if after.value is not None else False, known))
            self._runs[topic] = _joined(left)
            for batch in _batches(changes):
                (first, target, known), last = batch[0], batch[-1][0]
                done = first.value == target or self._try(request, topic, first.start, last.stop, first.value, target)
                if not (done and known):
                    request.tally.not_restored += 1

    def _pieces(self, topic: Topic, met: list[_Run], start: int, stop: int) -> Iterator[_Run]:
        """The runs of a range, cut to it, and new ones with what the runtime says where there are none."""
        at = start
        for run in met:
            first, last = max(run.start, start), min(run.stop, stop)
            if first < last:
                if at < first:
                    yield _Run(at, first, self._before(topic, at, first))
                yield run._replace(start=first, stop=last)
                at = last
        if at < stop:
            yield _Run(at, stop, self._before(topic, at, stop))

    def _before(self, topic: Topic, start: int, stop: int) -> Value | None:
        """What stands on a range on which no scope keeps advice. One value: mixed advice reads as none."""
        try:
            answer = self._driver.read_range(start, stop - start, topic.attribute)
        except DriverError:
            return None
        if topic.advice is Advice.ACCESSED_BY and answer is not None:
            return topic.place in answer
        value: Value | None = answer
        return value

    def _call(self, request: _Request, topic: Topic, start: int, stop: int, old: Value | None, value: Value) -> bool:
        """Tell the driver; whether it took the hint."""
        if topic.place is not None:
            place = topic.place
        elif not isinstance(value, bool):
            place = value
        elif old is not None and not isinstance(old, bool):
            place = old
        else:
            place = Device(self._driver.current_device())
        on = value is not False
        request.tally.calls += 1
        asked = self._driver.advise(start, stop - start, topic.advice, place, on) is Outcome.ASKED
        if events.listeners:
            name = topic.advice.name.lower()
            self._records.append(events.Advised(start, stop - start, name, place, on, asked))
        return asked

    def _try(self, request: _Request, topic: Topic, start: int, stop: int, old: Value | None, value: Value) -> bool:
        try:
            return self._call(request, topic, start, stop, old, value)
        except Exception as error:
            warn_once("advice could not be restored on leaving a scope (%d bytes)", stop - start, error=error)
            return False


def _without(run: _Run, start: int, stop: int) -> Iterator[_Run]:
    """The parts of a run that lie outside a range."""
    if run.start < start:
        yield run._replace(stop=min(run.stop, start))
    if run.stop > stop:
        yield run._replace(start=max(run.start, stop))


def _joined(runs: list[_Run]) -> list[_Run]:
    """The runs sorted, neighbours that say the same made one."""
    joined: list[_Run] = []
    for run in sorted(runs, key=lambda run: run.start):
        last = joined[-1] if joined else None
        if last is not None and (last.stop, last.before, last.stack) == (run.start, run.before, run.stack):
            joined[-1] = last._replace(stop=run.stop)
        else:
            joined.append(run)
    return joined


def _batches(changes: list[tuple[_Run, Value, bool]]) -> Iterator[list[tuple[_Run, Value, bool]]]:
    """Neighbouring changes from and to the same value, which one call can make."""
    batch: list[tuple[_Run, Value, bool]] = []
    for change in changes:
        run, target, known = change
        if batch:
            last, *same = batch[-1]
            if last.stop != run.start or last.value != run.value or same != [target, known]:
                yield batch
                batch = []
        batch.append(change)
    if batch:
        yield batch
