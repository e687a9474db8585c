"""What prep writes and what compute reads."""

from __future__ import annotations

from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from umarray.drivers.base import Kind
from umarray.drivers.host import HostDriver
from umarray.errors import ClosedError
from umarray.pipeline.batch import Batch, WritableSlot
from umarray.pipeline.layout import Layout
from umarray.pipeline.ring import Ring
from umarray.pipeline.structure import Spec


@pytest.fixture
def slot() -> Iterator[WritableSlot]:
    layout = Layout({"x": Spec((4, 2), "int32"), "name": "digits"})
    ring = Ring(HostDriver(), Kind.HOST, layout.nbytes, 2, 0, SimpleQueue())
    writable = WritableSlot(layout, ring.slots[0].address, None)
    writable.renew()
    yield writable
    ring.close()


def test_an_array_is_written_by_its_key(slot: WritableSlot) -> None:
    x = slot["x"]
    slot["x"] = 3
    assert (x == 3).all()
    slot["x"] = np.full((4, 2), 4)
    assert (x == 4).all()
    slot.length = 2
    slot["x"] = np.full((2, 2), 5)
    assert (x[:2] == 5).all() and (x[2:] == 4).all()
    slot["x"] += 1
    slot.check()
    assert (x[:2] == 6).all()


@pytest.mark.parametrize("value", [np.zeros((3, 2)), np.zeros(2), np.zeros((4, 2, 1))])
def test_another_shape_is_refused_and_nothing_is_written(slot: WritableSlot, value: Any) -> None:
    slot["x"] = 7
    with pytest.raises(ValueError, match=r"slot\['x'\] has shape \(4, 2\); prep wrote shape"):
        slot["x"] = value
    assert (slot["x"] == 7).all()


def test_what_is_no_array_cannot_be_written(slot: WritableSlot) -> None:
    with pytest.raises(TypeError, match=r"slot\['name'\] is no array"):
        slot["name"] = "other"


@pytest.mark.parametrize("value", [-1, 5, 2**70])
def test_a_length_that_does_not_fit_changes_nothing(slot: WritableSlot, value: int) -> None:
    slot.length = 3
    with pytest.raises(ValueError, match=f"slot.length must be 0 to 4, .*not {value}"):
        slot.length = value
    assert slot.length == 3
    slot.renew()
    assert slot.length == 4


def test_a_slot_that_prep_kept_is_closed_with_its_pipeline(slot: WritableSlot) -> None:
    kept = slot["x"]
    slot.close()
    kept[...] = 1  # its memory is alive as long as the array
    for use in (lambda: slot["x"], lambda: slot.__setitem__("x", 1), lambda: setattr(slot, "length", 1)):
        with pytest.raises(ClosedError, match="this slot's pipeline is closed"):
            use()


def test_a_batch_is_its_nest_until_it_is_closed() -> None:
    batch = Batch(3, 2, "meta", {"x": 1})
    assert (batch["x"], list(batch), "x" in batch, batch.meta, repr(batch)) == (
        1,
        ["x"],
        True,
        "meta",
        "<batch 3 of 2>",
    )
    batch.close()
    with pytest.raises(ClosedError, match="batch 3 was valid until the next one"):
        batch["x"]
    assert (batch.index, batch.length, batch.meta) == (3, 2, "meta")
