from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from tests.residency.arrays import address, managed
from umarray import events
from umarray.errors import DriverError
from umarray.places import HOST
from umarray.residency.callers import calling_line
from umarray.residency.telling import operand_of, tell_begin, tell_end


def test_nobody_listening_is_told_nothing() -> None:
    assert tell_begin("move", calling_line(), [object()]) == 0  # not even looked at
    tell_end(0, "move")


def test_an_operand_is_where_its_elements_lie() -> None:
    x = np.zeros((4, 6), "f4")
    assert operand_of(x) == events.Operand(x.ctypes.data, 96, (4, 6), "float32")
    backwards = x[::-1, ::2]
    assert operand_of(backwards) == events.Operand(x.ctypes.data, 92, (4, 3), "float32")


def test_a_beginning_and_its_end(told: list[Any]) -> None:
    x = np.zeros(3)
    serial = tell_begin("move", calling_line(), [x], label="there", place=HOST, stream=7)
    tell_end(serial, "move")
    began, ended = told
    assert (began.serial, began.action, began.label, began.place, began.stream) == (serial, "move", "there", HOST, 7)
    assert began.arrays == (operand_of(x),) and began.line
    assert ended == events.Ended(serial, "move")


def test_move_is_told(fake: FakeDriver, told: list[Any]) -> None:
    x = managed(fake)
    told.clear()
    um.move(x, to=HOST)
    began, asked, ended = told
    assert (began.action, began.place, began.stream) == ("move", HOST, None)
    assert asked == events.Prefetched(address(x), x.nbytes, HOST, True, asked.stream, began.serial)
    assert ended.serial == began.serial


def test_a_scope_that_fails_to_begin_ends(fake: FakeDriver, told: list[Any]) -> None:
    x = managed(fake)
    told.clear()
    fake.fail("prefetch", 1)
    with pytest.raises(DriverError), um.prefetch(x):
        raise AssertionError("not reached")
    assert [type(one) for one in told] == [events.Began, events.Ended]


def test_serials_are_one_for_the_process(fake: FakeDriver, told: list[Any]) -> None:
    x = managed(fake)

    def work() -> None:
        for _ in range(50):
            with um.prefetch(x):
                pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    began = [one.serial for one in told if isinstance(one, events.Began)]
    assert len(began) == len(set(began)) == 150
    assert sorted(began) == sorted(one.serial for one in told if isinstance(one, events.Ended))


def test_an_epoch_is_told_with_its_line(told: list[Any]) -> None:
    with um.pool("1MiB") as pool, pool.epoch("train"):
        pass
    began = next(one for one in told if isinstance(one, events.Began))
    assert (began.action, began.label, began.line.rpartition(":")[0]) == ("epoch", "train", __file__)
    assert told[-1] == events.Ended(began.serial, "epoch")


def test_the_place_of_a_prefetch_is_where_it_goes(fake: FakeDriver, told: list[Any]) -> None:
    x = managed(fake)
    told.clear()
    with um.prefetch(x, to=HOST, stream=0):
        pass
    assert (told[0].place, told[0].stream) == (HOST, 0)
