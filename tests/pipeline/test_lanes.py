"""Threads with a queue, and the order of what several threads finish."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from tests.fake_driver import FakeDriver
from umarray.pipeline.lanes import InOrder, Lane


@given(st.permutations(range(8)))
def test_what_is_finished_in_any_order_is_handed_on_in_order(numbers: list[int]) -> None:
    out: list[int] = []
    order = InOrder(out.append)
    for done, number in enumerate(numbers, start=1):
        order.put(number, number)
        expected = next(n for n in range(9) if n not in numbers[:done])
        assert out == list(range(expected))


def test_a_lane_works_on_its_stream_until_told_and_gives_its_error_to_fail() -> None:
    fake = FakeDriver()
    stream, seen, errors = fake.create_stream(0), list[tuple[int, int]](), list[BaseException]()

    def work(message: int) -> None:
        seen.append((message, fake.current_stream(0)))
        if message == 3:
            raise LookupError(message)

    lane = Lane("test", work, errors.append, fake, stream, 0)
    lane.join()  # before it has started
    lane.start()
    lane.put(1)
    lane.stop()
    lane.put(2)  # after the end
    lane.join()
    assert seen == [(1, stream)] and errors == []
    lane = Lane("test", work, errors.append, fake, stream, 0)
    lane.start()
    lane.put(3)
    lane.join()
    assert seen[1:] == [(3, stream)] and [error.args for error in errors] == [(3,)]
    assert not [thread for thread in threading.enumerate() if thread.name == "umarray-test"]
