"""The ledger against a model that keeps a stack for each page, and what it does when calls fail or threads meet."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from tests.fake_driver import Call, FakeDriver
from umarray import events
from umarray.drivers.base import Advice, Kind, Outcome
from umarray.errors import DriverError
from umarray.places import HOST, Device, Place
from umarray.residency import ledger as ledger_module
from umarray.residency.ledger import Ledger, Standing, Topic, Value
from umarray.residency.spans import merge
from umarray.residency.tally import Tally

PAGE, PAGES = 4096, 10
READ = Topic(Advice.READ_MOSTLY)
PREFER = Topic(Advice.PREFERRED_LOCATION)
BY = {place: Topic(Advice.ACCESSED_BY, place) for place in (HOST, Device(0), Device(1))}
TOPICS = (READ, PREFER, *BY.values())


def said(driver: FakeDriver, address: int, topic: Topic) -> Value:
    """What the driver really has for one page, through its back door."""
    pages = driver._pages[driver._table.find(address).serial]  # type: ignore[union-attr]
    at = (address - driver._table.find(address).address) // PAGE  # type: ignore[union-attr]
    answer = pages.read(slice(at, at + 1), topic.attribute)
    return answer if topic.place is None else topic.place in answer


wishes = st.dictionaries(
    st.sampled_from(TOPICS), st.booleans() | st.sampled_from([HOST, Device(0), Device(1)]), min_size=1, max_size=3
).map(lambda said: [(topic, _fitting(topic, value)) for topic, value in said.items()])
ranges = st.lists(st.tuples(st.integers(0, PAGES), st.integers(0, PAGES)), min_size=1, max_size=3)


def _fitting(topic: Topic, value: Value) -> Value:
    if topic is PREFER:
        return Device(0) if isinstance(value, bool) else value
    return value if isinstance(value, bool) else True


class PerPage(RuleBasedStateMachine):
    scopes = Bundle("scopes")

    @initialize(foreign=wishes)
    def begin(self, foreign: list[tuple[Topic, Value]]) -> None:
        """Somebody else has set advice on everything, before any scope."""
        self.driver = FakeDriver(devices=2)
        self.block = self.driver.allocate(PAGE * PAGES, Kind.MANAGED)
        self.base: dict[Topic, Value] = dict.fromkeys(TOPICS, False)
        for topic, value in foreign:
            self.base[topic] = value
            place = value if not isinstance(value, bool) else topic.place or Device(0)
            self.driver.advise(self.block.address, self.block.nbytes, topic.advice, place, value is not False)
        self.ledger = Ledger(self.driver)
        self.stacks: dict[tuple[Topic, int], list[tuple[int, Value]]] = {}

    def value(self, topic: Topic, page: int) -> Value:
        stack = self.stacks.get((topic, page))
        return stack[-1][1] if stack else self.base[topic]

    def spans(self, wanted: list[tuple[int, int]]) -> list[tuple[int, int]]:
        start = self.block.address
        return [(start + low * PAGE, start + high * PAGE) for low, high in merge(wanted)]

    @rule(target=scopes, said=wishes, wanted=ranges)
    def enter(self, said: list[tuple[Topic, Value]], wanted: list[tuple[int, int]]) -> tuple[int, Tally]:
        changing = sum(
            len(merge((p, p + 1) for p in range(low, high) if self.value(topic, p) != value))
            for topic, value in said
            for low, high in merge(wanted)
        )
        before, tally = self.driver.count("advise"), Tally()
        token = self.ledger.enter(said, self.spans(wanted), tally)
        assert self.driver.count("advise") - before == changing == tally.calls  # one call a span that changes
        assert tally.bytes == len(said) * PAGE * sum(high - low for low, high in merge(wanted))
        for topic, value in said:
            for low, high in merge(wanted):
                for page in range(low, high):
                    self.stacks.setdefault((topic, page), []).append((token, value))
        return token, tally

    @rule(scope=consumes(scopes))
    def leave(self, scope: tuple[int, Tally]) -> None:
        token, tally = scope
        self.ledger.leave(token, tally)
        for stack in self.stacks.values():
            stack[:] = [entry for entry in stack if entry[0] != token]
        assert tally.not_restored == 0

    @rule(said=wishes, wanted=ranges, after=st.integers(0, 3))
    def enter_and_fail(self, said: list[tuple[Topic, Value]], wanted: list[tuple[int, int]], after: int) -> None:
        calls = 0

        def fail(call: Call) -> None:
            nonlocal calls
            calls += call.name == "advise"
            if call.name == "advise" and calls == after + 1:
                raise DriverError("advise", 700, "as a broken device")

        self.driver.on_call = fail
        tally = Tally()
        try:
            token = self.ledger.enter(said, self.spans(wanted), tally)
        except DriverError:
            pass
        else:  # it needed fewer calls
            self.driver.on_call = None
            self.ledger.leave(token, tally)
        self.driver.on_call = None

    @invariant()
    def every_page_has_what_the_newest_open_scope_says(self) -> None:
        for topic in TOPICS:
            for page in range(PAGES):
                assert said(self.driver, self.block.address + page * PAGE, topic) == self.value(topic, page)

    @invariant()
    def runs_are_few_and_none_stay(self) -> None:
        for topic, runs in self.ledger._runs.items():
            assert all(before.stop <= after.start for before, after in zip(runs, runs[1:], strict=False))
            assert sum(run.stop - run.start for run in runs) == PAGE * sum(
                bool(stack) for (other, _), stack in self.stacks.items() if other == topic
            )
        assert self.ledger.empty == (not any(self.stacks.values()))

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            assert not self.driver.faults


TestPerPage = PerPage.TestCase
TestPerPage.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)


def block(driver: FakeDriver, pages: int = 4) -> tuple[int, int]:
    allocation = driver.allocate(pages * PAGE, Kind.MANAGED)
    return allocation.address, allocation.address + pages * PAGE


def test_what_stands_is_told_with_its_bytes(fake: FakeDriver) -> None:
    ledger, (start, stop) = Ledger(fake), block(fake)
    ledger.enter([(READ, True), (PREFER, HOST), (BY[Device(0)], True)], [(start, start + PAGE)], Tally())
    ledger.enter([(READ, False)], [(stop - PAGE, stop)], Tally())
    assert set(ledger.standing([(start + 1, stop)])) == {
        Standing("read_mostly", None, PAGE - 1),
        Standing("preferred_location", HOST, PAGE - 1),
        Standing("accessed_by", Device(0), PAGE - 1),
    }


def test_what_cannot_be_read_is_unset_and_counted_as_not_restored(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(readable_ranges=False)
    ledger, span = Ledger(fake), block(fake)
    outer, inner = Tally(), Tally()
    first = ledger.enter([(READ, True)], [span], outer)
    second = ledger.enter([(READ, True)], [span], inner)
    ledger.leave(first, outer)
    assert outer.not_restored == 0  # the other scope still says so: there was nothing to restore
    assert said(fake, span[0], READ) is True
    ledger.leave(second, inner)
    assert inner.not_restored == 1 and said(fake, span[0], READ) is False


def test_mixed_advice_of_others_reads_as_none(fake: FakeDriver) -> None:
    ledger, (start, stop) = Ledger(fake), block(fake)
    fake.advise(start, PAGE, Advice.PREFERRED_LOCATION, HOST, True)
    tally = Tally()
    ledger.leave(ledger.enter([(PREFER, Device(0))], [(start, stop)], tally), tally)
    assert said(fake, start, PREFER) is False


def test_an_unsupported_hint_does_not_stand_and_is_not_undone(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(missing=["advise"])
    ledger, span, tally = Ledger(fake), block(fake), Tally()
    token = ledger.enter([(READ, True), (PREFER, HOST)], [span], tally)
    assert (tally.asked, tally.unsupported, tally.calls, tally.bytes) == (0, 2, 2, 0)
    assert ledger.standing([span]) == () and ledger.empty
    ledger.leave(token, tally)
    assert tally.calls == 2 and tally.not_restored == 0


def test_a_hint_that_is_unsupported_in_part_stands_where_it_was_taken(fake: FakeDriver) -> None:
    ledger, (start, stop), tally = Ledger(fake), block(fake), Tally()
    outer = ledger.enter([(READ, True)], [(start + PAGE, start + 2 * PAGE)], Tally())
    fake.advise = lambda *args: Outcome.UNSUPPORTED  # type: ignore[method-assign]
    token = ledger.enter([(READ, True)], [(start, stop)], tally)
    assert (tally.asked, tally.unsupported, tally.bytes) == (1, 2, PAGE)
    del fake.advise  # type: ignore[attr-defined]
    ledger.leave(outer, Tally())
    assert said(fake, start + PAGE, READ) is True and said(fake, start, READ) is False
    ledger.leave(token, tally)
    assert said(fake, start + PAGE, READ) is False and ledger.empty


def test_a_failing_undo_is_counted_and_does_not_raise(fake: FakeDriver) -> None:
    ledger, span, tally = Ledger(fake), block(fake), Tally()
    token = ledger.enter([(READ, True)], [span], tally)
    fake.fail("advise", 700)
    ledger.leave(token, tally)
    assert tally.not_restored == 1 and ledger.empty


def test_the_undo_is_in_reverse(fake: FakeDriver) -> None:
    ledger, span = Ledger(fake), block(fake)
    token = ledger.enter([(PREFER, HOST), (READ, True)], [span], Tally())
    ledger.leave(token, Tally())
    assert [(call.args["advice"], call.args["on"]) for call in fake.named("advise")] == [
        (Advice.PREFERRED_LOCATION, True),
        (Advice.READ_MOSTLY, True),
        (Advice.READ_MOSTLY, False),
        (Advice.PREFERRED_LOCATION, False),
    ]


def test_threads_that_come_and_go_leave_everything_as_it_was(fake: FakeDriver) -> None:
    ledger, (start, stop) = Ledger(fake), block(fake, 8)
    fake.advise(start, stop - start, Advice.PREFERRED_LOCATION, HOST, True)
    begin, failures = threading.Barrier(6), list[BaseException]()

    def work(number: int) -> None:
        try:
            begin.wait(10)
            for turn in range(40):
                low = start + (number + turn) % 6 * PAGE
                token = ledger.enter([(PREFER, Device(0)), (READ, turn % 2 == 0)], [(low, low + 3 * PAGE)], Tally())
                ledger.leave(token, Tally())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)
    assert ledger.empty
    for page in range(8):
        assert said(fake, start + page * PAGE, PREFER) == HOST
        assert said(fake, start + page * PAGE, READ) is False


def test_an_exit_does_not_wait_for_another_threads_call_and_the_last_word_is_right(fake: FakeDriver) -> None:
    """One thread is kept inside a driver call; another's exit returns at once, and is carried out afterwards."""
    ledger, span = Ledger(fake), block(fake)
    mine = ledger.enter([(READ, True)], [span], Tally())
    inside, go_on = threading.Event(), threading.Event()

    def keep(call: Call) -> None:
        if call.name == "advise" and call.args["advice"] is Advice.PREFERRED_LOCATION:
            inside.set()
            assert go_on.wait(10)

    fake.on_call = keep
    other = threading.Thread(target=lambda: ledger.enter([(PREFER, HOST)], [span], Tally()))
    other.start()
    assert inside.wait(10)
    kept_alive = Kept()
    ledger.leave(mine, Tally(), keep=kept_alive)
    del kept_alive
    assert said(fake, span[0], READ) is True and Kept.alive == 1  # not yet, and its arrays are held until then
    go_on.set()
    other.join(10)
    assert not other.is_alive() and said(fake, span[0], READ) is False
    gc.collect()
    assert Kept.alive == 0


class Kept:
    alive = 0

    def __init__(self) -> None:
        Kept.alive += 1

    def __del__(self) -> None:
        Kept.alive -= 1


def test_an_exit_from_within_a_driver_call_of_the_same_thread_is_carried_out(fake: FakeDriver) -> None:
    """As a finaliser does that the garbage collector runs in the middle of an entry."""
    ledger, span = Ledger(fake), block(fake)
    mine = ledger.enter([(READ, True)], [span], Tally())

    def leave_once(call: Call) -> None:
        if call.name == "advise":
            fake.on_call = None
            ledger.leave(mine, Tally())

    fake.on_call = leave_once
    ledger.enter([(PREFER, HOST)], [span], Tally())
    assert said(fake, span[0], READ) is False and said(fake, span[0], PREFER) == HOST


def test_events_are_told_outside_of_turns(fake: FakeDriver) -> None:
    ledger, span, told = Ledger(fake), block(fake), list[Any]()

    def listen(record: events.Record) -> None:
        assert not ledger._turns._turn.locked()
        told.append(record)

    stop = events.listen(listen)
    try:
        token = ledger.enter([(READ, True)], [span], Tally())
        ledger.leave(token, Tally())
    finally:
        stop()
    nbytes, place = span[1] - span[0], Device(0)
    assert told == [
        events.Advised(span[0], nbytes, "read_mostly", place, True, True),
        events.Advised(span[0], nbytes, "read_mostly", place, False, True),
    ]


def test_an_entry_that_fails_raises_its_own_error(fake: FakeDriver) -> None:
    ledger, span = Ledger(fake), block(fake)
    fake.fail("advise", 719)
    with pytest.raises(DriverError, match="719"):
        ledger.enter([(READ, True)], [span], Tally())
    assert ledger.empty


def test_places_are_told_apart(fake: FakeDriver) -> None:
    place: Place = HOST
    assert Topic(Advice.ACCESSED_BY, place) != Topic(Advice.ACCESSED_BY, Device(0))


def test_thousands_of_ranges_cost_what_each_costs_alone(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    joined = ledger_module._joined
    monkeypatch.setattr(ledger_module, "_joined", lambda runs: looked_at.append(len(runs)) or joined(runs))
    count = 500
    block = fake.allocate(2 * count * PAGE, Kind.MANAGED)
    ledger, tally = Ledger(fake), Tally()
    apart = [(block.address + 2 * k * PAGE, block.address + (2 * k + 1) * PAGE) for k in range(count)]
    token = ledger.enter([(READ, True)], apart, tally)
    assert tally.asked == count and sum(looked_at) <= 3 * count  # itself and its neighbours
    ledger.leave(token, tally)
    assert ledger.empty
    fake.free(block)
