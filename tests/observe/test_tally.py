from __future__ import annotations

from umarray import events
from umarray.memory import Escape
from umarray.observe.report import Requests
from umarray.observe.tally import Tally
from umarray.places import HOST, Device


def test_records_add_up() -> None:
    tally = Tally()
    for record in (
        events.Prefetched(0, 100, Device(0), True),
        events.Prefetched(0, 1000, HOST, True),
        events.Prefetched(0, 7, Device(0), False),
        events.Advised(0, 7, "read_mostly", Device(0), True, True),
        events.Advised(0, 7, "read_mostly", Device(0), False, False),
        events.Copied(3, HOST, Device(0)),
        events.Copied(5, Device(0), HOST),
        events.Copied(9, Device(0), Device(1)),
        events.Waited(0.25, "why"),
        events.Waited(0.5, "why"),
        events.Allocated(0, 4096, "managed", Device(0)),
        events.EpochEnded("train", 1, 80, (("a.py:1", 1, 80),)),
        events.Ended(1, "move"),
    ):
        tally.add(record)
    assert tally.requests() == Requests(2, 1100, 1, 2, 3, 5, 1, 4096)
    assert (tally.stalls, tally.stall_seconds) == (2, 0.75)
    assert tally.escapes == [Escape("a.py:1", 1, 80, "train")]
