from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import umarray as um
from umarray.memory import watched
from umarray.memory.watched import BlockLog


class Teller:
    settled = 0

    def settle(self) -> None:
        self.settled += 1


@pytest.fixture
def log() -> Iterator[BlockLog]:
    log = BlockLog()
    log.open()
    yield log
    log.close()
    assert log not in watched.logs


def test_counts_and_what_happened() -> None:
    log, teller = BlockLog(), Teller()
    log.made(teller, 1, 4096, 100, ("a.py", 1))
    log.made(teller, 2, 8192, 50, ("a.py", 2))
    log.gone(teller, 1)
    log.made(teller, 3, 4096, 20, ("a.py", 3))
    assert (log.allocations, log.total_bytes, log.current_bytes, log.peak_bytes) == (3, 170, 70, 150)
    happened, lost = log.take()
    assert [(one.gone, one.address, one.line[1]) for one in happened] == [
        (False, 4096, 1),
        (False, 8192, 2),
        (True, 4096, 1),
        (False, 4096, 3),
    ]
    assert lost == 0 and log.take() == ([], 0)
    assert [one.at for one in happened] == sorted(one.at for one in happened)


def test_the_end_of_a_block_from_before_is_of_no_interest() -> None:
    log = BlockLog()
    log.gone(Teller(), 7)
    assert log.current_bytes == 0 and log.take() == ([], 0)


def test_trackers_with_equal_serials_are_told_apart() -> None:
    log, one, other = BlockLog(), Teller(), Teller()
    log.made(one, 1, 0, 10, ("a.py", 1))
    log.made(other, 1, 0, 7, ("a.py", 1))
    log.gone(one, 1)
    assert log.current_bytes == 7
    log.settle()
    assert one.settled == other.settled == 1


def test_it_is_bounded_and_its_sums_stay_right() -> None:
    log, teller = BlockLog(3), Teller()
    for serial in range(10):
        log.made(teller, serial, serial, 1, ("a.py", 1))
    happened, lost = log.take()
    assert [one.address for one in happened] == [7, 8, 9] and lost == 7
    assert (log.allocations, log.total_bytes) == (10, 10)


@pytest.mark.usefixtures("log")
def test_while_one_is_open_every_pool_tracks_what_it_hands_out_itself() -> None:
    log = watched.logs[0]
    with um.pool("1MiB"):
        x = um.zeros(1000, "u1")
        del x
        y = um.zeros(3000, "u1")
        log.settle()
        assert (log.allocations, log.total_bytes, log.current_bytes, log.peak_bytes) == (2, 4096, 3072, 3072)
        assert [one.line[0] for one in log.take()[0]] == [__file__] * 3
        del y


@pytest.mark.usefixtures("log")
def test_the_default_pool_and_other_threads_too() -> None:
    log = watched.logs[0]
    thread = threading.Thread(target=lambda: um.zeros(10, "u1"))
    thread.start()
    thread.join()
    assert log.allocations == 1


def test_afterwards_nothing_is_tracked() -> None:
    log = BlockLog()
    log.open()
    log.close()
    with um.pool("1MiB") as pool:
        x = um.zeros(10)
        assert log.allocations == 0 and pool.tracker.next_serial == 0
        del x


def test_an_epoch_inside_tells_its_escapes(log: BlockLog) -> None:
    with um.pool("1MiB") as pool:
        with pool.epoch("train") as epoch:
            x = um.zeros(10)
        assert epoch.escapes is not None and [one.count for one in epoch.escapes] == [1]
        del x
