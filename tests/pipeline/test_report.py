"""Stage times: added up, tied to the host's clock, and what follows from them."""

from __future__ import annotations

from typing import Any

import pytest

from umarray import events
from umarray.drivers.host import HostDriver
from umarray.pipeline.report import Clock, slowest


@pytest.mark.parametrize(
    ("stages", "workers", "seconds"),
    [
        ({"prep": 2.0, "transfer": 1.0, "compute": 3.0}, 1, 3.0),
        ({"source": 2.0, "prep": 2.0, "compute": 3.0}, 1, 4.0),
        ({"source": 2.0, "prep": 2.0, "compute": 1.0}, 4, 2.0),
        ({"prep": 1.0}, 2, 0.5),
    ],
)
def test_the_ideal_is_the_slowest_stage(stages: dict[str, float], workers: int, seconds: float) -> None:
    assert slowest(stages, workers) == seconds


def test_device_stages_count_once_they_are_done(fake: Any) -> None:
    clock, told = Clock(fake), list[Any]()
    stop = events.listen(told.append)
    clock.anchor(fake.record(0, 0, timed=True), 100.0)
    gate = fake.hold(0)
    for index in range(3):
        clock.queued("compute", index, fake.record(0, 0, timed=True), fake.record(0, 0, timed=True))
    clock.ran("prep", 0, 1.0, 3.0)
    clock.ran("prep", -1, 1.0, 9.0)
    clock.settle()
    assert clock.steps == 0 and clock.stages()["prep"] == 2.0
    gate.open()
    clock.settle()
    stop()
    assert clock.steps == 3 and clock.step() > 0
    ran = [record for record in told if isinstance(record, events.StageRan)]
    assert [(record.stage, record.index) for record in ran] == [("prep", 0), *(("compute", i) for i in range(3))]
    assert all(100.0 <= record.start <= record.end < 200.0 for record in ran[1:])


def test_a_compute_that_leaves_another_stream_as_the_current_one_is_timed_once_both_events_are_done(fake: Any) -> None:
    clock, other = Clock(fake), fake.create_stream(0)
    gate = fake.hold(0)
    start, end = fake.record(0, 0, timed=True), fake.record(other, 0, timed=True)
    clock.queued("compute", 0, start, end)
    end.wait()
    clock.settle()
    assert clock.steps == 0 and not start.done()
    gate.open()
    clock.wait()
    assert clock.steps == 1 and clock.stages()["compute"] == 0.0  # it ended before it began


def test_spans_of_two_iterations_leave_out_what_lies_between(fake: Any) -> None:
    clock, at = Clock(fake), iter((0.0, 1.0, 0.0, 3.0, 1000.0, 1001.0, 1000.0, 1005.0))

    def event() -> Any:
        made = fake.record(0, 0, timed=True)
        made.at = next(at)
        return made

    for _ in range(2):
        for index in range(2):
            clock.queued("compute", index, event(), event())
        clock.finish()
    assert clock.step() == (2.0 + 4.0) / 2


def test_the_first_batch_of_an_iteration_counts_for_no_stage() -> None:
    """It holds compilation, and no step contains it: stages and step must speak of the same batches."""
    driver = HostDriver()
    clock = Clock(driver)
    for _ in range(2):
        for index, seconds in enumerate([100.0, 1.0, 3.0]):
            clock.ran("prep", index, 0.0, seconds)
            event = driver.record(0, 0, timed=True)
            clock.queued("compute", index, event, event)
        clock.finish()
    assert clock.steps == 6 and clock.stages()["prep"] == 2.0


def test_a_single_batch_is_all_that_there_is_to_count() -> None:
    driver = HostDriver()
    clock = Clock(driver)
    clock.ran("prep", 0, 0.0, 5.0)
    event = driver.record(0, 0, timed=True)
    clock.queued("compute", 0, event, event)
    clock.finish()
    assert clock.stages()["prep"] == 5.0


def test_of_short_steps_some_are_timed_and_all_are_counted(fake: Any) -> None:
    clock = Clock(fake)
    clock.sparse = True
    assert [index for index in range(40) if clock.times(index)] == [0, 1, 16, 32]
    assert [index for index in range(0, 40, 4) if clock.times(index, 4)] == [0, 16, 32]
    assert [index for index in range(1, 40, 3) if clock.times(index, 3)] == [1, 16, 31]
    at = 0.0
    for index in range(33):
        if not clock.times(index):
            clock.passed()
            continue
        events = [fake.record(0, 0, timed=True) for _ in range(2)]
        events[0].at, events[1].at = index * 2.0, index * 2.0 + 0.5
        clock.queued("compute", index, *events)
        at = index * 2.0
    clock.finish()
    assert at == 64.0 and clock.steps == 33 and clock.step() == 2.0 and clock.stages()["compute"] == 0.5
    stop = events_of_nobody()
    assert clock.times(7)
    stop()


def events_of_nobody() -> Any:
    return events.listen(lambda record: None)


def test_a_group_counts_as_its_batches(fake: Any) -> None:
    clock = Clock(fake)
    start, end = (fake.record(0, 0, timed=True) for _ in range(2))
    start.at, end.at = 1.0, 5.0
    clock.queued("transfer", 3, start, end, 4)
    clock.settle()
    assert clock.stages()["transfer"] == 1.0


def test_a_lap_is_what_came_since_the_one_before() -> None:
    driver = HostDriver()
    clock = Clock(driver)
    for seconds in (1.0, 3.0):
        for index in range(5):
            clock.ran("prep", index, 0.0, seconds)
            start, end = driver.record(0, 0), driver.record(0, 0)
            end.at = index * seconds  # type: ignore[attr-defined]
            clock.queued("compute", index, start, end)
        clock.finish()
        steps, step, stages = clock.lap()
        assert (steps, step, stages["prep"]) == (4, seconds, seconds)
    assert clock.lap()[0] == 0
