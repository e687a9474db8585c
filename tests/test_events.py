import logging

import pytest

from umarray import events
from umarray.places import HOST

RECORD = events.Waited(0.5, "test")


def test_a_listener_hears_until_it_stops() -> None:
    heard: list[events.Record] = []
    stop = events.listen(heard.append)
    try:
        events.emit(RECORD)
    finally:
        stop()
    events.emit(RECORD)
    assert heard == [RECORD]
    assert not events.listeners


def test_a_listener_that_raises_is_dropped_and_logged_and_the_others_hear(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[events.Record] = []

    def broken(record: events.Record) -> None:
        raise RuntimeError("no")

    stops = [events.listen(broken), events.listen(heard.append)]
    try:
        with caplog.at_level(logging.WARNING, logger="umarray"):
            events.emit(RECORD)
            events.emit(RECORD)
        assert heard == [RECORD, RECORD]
        assert broken not in events.listeners
        assert len(caplog.records) == 1
    finally:
        for stop in stops:
            stop()


def test_records_are_frozen() -> None:
    record = events.Prefetched(4096, 4096, HOST, True)
    with pytest.raises(AttributeError):
        record.nbytes = 1  # type: ignore[misc]
