"""Results on their way to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from umarray.pipeline.outbox import Outbox
from umarray.pipeline.report import Clock


def test_a_copy_waits_for_the_current_stream(make_fake: Any) -> None:
    fake = make_fake("explicit")
    outbox = Outbox(fake, 0, Clock(fake))
    gate = fake.hold(0)
    ticket = outbox.send(np.ones(3), 0)
    assert ticket._done is not None and not ticket._done.done()
    gate.open()
    assert (ticket.fetch() == 1).all() and outbox.bytes_moved == 24
    outbox.close()
    assert fake.live == {} and fake.open_streams() == set()


def test_two_results_under_way_do_not_meet_and_buffers_are_reused(make_fake: Any) -> None:
    fake = make_fake("explicit")
    outbox = Outbox(fake, 0, Clock(fake))
    before = outbox.send({"a": np.zeros(3), "b": (np.zeros(0), 5, np.float32(2))}, 0)
    for item in range(1, 6):
        after = outbox.send({"a": np.full(3, item), "b": (np.zeros(0), 5, np.float32(2))}, item)
        got = before.fetch()
        assert (got["a"] == item - 1).all() and got["b"][0].shape == (0,) and got["b"][1] == 5
        assert type(got["b"][2]) is np.ndarray and got["b"][2] == 2
        before = after
    before.fetch()
    assert fake.count("allocate") == 2
    outbox.close()
    assert fake.live == {}
