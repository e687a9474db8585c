"""The table of allocations against a plain model, from threads, and from finalisers that run inside it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umarray.drivers.base import Allocation, Kind
from umarray.drivers.table import AllocationTable
from umarray.places import HOST


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 15)), max_size=60))
def test_against_a_model(steps: list[tuple[bool, int]]) -> None:
    table, model = AllocationTable(), dict[int, Allocation]()
    for add, slot in steps:
        address, nbytes = 4096 + 100 * slot, 1 + slot * 7 % 100
        if add and slot not in model:
            model[slot] = table.add(address, nbytes, Kind.MANAGED, HOST)
        elif not add and slot in model:
            table.remove(model.pop(slot))
        for probe in range(4000, 5800, 33):
            holders = [one for one in model.values() if one.address <= probe < one.address + one.nbytes]
            assert table.find(probe) == (holders[0] if holders else None)
        assert len(table) == len(model)


def test_an_address_that_comes_again_has_another_serial() -> None:
    table = AllocationTable()
    first = table.add(4096, 10, Kind.DEVICE, HOST)
    table.remove(first)
    second = table.add(4096, 10, Kind.DEVICE, HOST)
    assert first.serial != second.serial
    with pytest.raises(ValueError, match="freed before"):
        table.remove(first)
    assert table.find(4100) == second


class Meddling(int):
    """An address at whose hashing, which happens inside the table's methods, something else happens once."""

    meddle: Any = None

    def __hash__(self) -> int:
        meddle, self.meddle = self.meddle, None
        if meddle is not None:
            meddle()
        return int.__hash__(self)


@pytest.mark.parametrize("step", ["add", "remove"])
def test_the_collector_may_free_inside_a_step(step: str) -> None:
    table = AllocationTable()
    others = [table.add(4096 * index, 4096, Kind.MANAGED, HOST) for index in (1, 2, 8, 9)]
    address = Meddling(4096 * 5)
    mine = table.add(address, 4096, Kind.MANAGED, HOST)
    if step == "add":
        table.remove(mine)
    address.meddle = lambda: [table.remove(others[index]) for index in (0, 3)]

    def act() -> None:
        if step == "add":
            table.add(address, 4096, Kind.MANAGED, HOST)
        else:
            table.remove(mine)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "the table waits for itself"
    found = [slot for slot in range(12) if table.find(4096 * slot) is not None]
    assert found == ([2, 5, 8] if step == "add" else [2, 8])


def test_threads() -> None:
    table, errors = AllocationTable(), list[Any]()

    def work(base: int) -> None:
        try:
            for index in range(500):
                mine = table.add(base + index * 64, 64, Kind.MANAGED, HOST)
                assert table.find(mine.address + 63) == mine
                if index % 2:
                    table.remove(mine)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(1 << (20 + index),)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not errors and len(table) == 1000
