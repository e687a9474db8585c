"""Slots: legal moves by those who may make them, and which batches hold one."""

from __future__ import annotations

import pytest

from umarray.drivers.base import Allocation, Kind
from umarray.errors import PipelineError
from umarray.pipeline.slots import LEGAL, Part, Role, Slot, State
from umarray.places import HOST


def make() -> Slot:
    return Slot(0, Allocation(4096, 4096, Kind.HOST, HOST, 1))


@pytest.mark.parametrize("start", State)
@pytest.mark.parametrize("end", State)
@pytest.mark.parametrize("role", Role)
def test_only_legal_moves_are_made(start: State, end: State, role: Role) -> None:
    slot = make()
    slot.state = start
    if role in LEGAL.get((start, end), ()):
        slot.go(end, role)
        assert slot.state is end
    else:
        with pytest.raises(PipelineError, match=f"slot 0 cannot go from {start.value} to {end.value} by {role.value}"):
            slot.go(end, role)
        assert slot.state is start


def test_a_slot_knows_its_batches() -> None:
    slot = make()
    assert not slot.held() and slot.unread == 0
    slot.hold([Part(7, 4), Part(8, 4), Part(9, 1)])
    assert (slot.batch, slot.count, slot.unread) == (7, 3, 3)
