from __future__ import annotations

import pytest

from umarray import events
from umarray.observe.charge import charge
from umarray.observe.recording import Stamped
from umarray.places import HOST, Device

PAGE = 4096


def stamped(*records: events.Record) -> list[Stamped]:
    """A second apart, in order."""
    return [Stamped(float(at), 0, one) for at, one in enumerate(records)]


def moved(at: float, address: int, nbytes: int, cause: str = "fault", back: bool = False) -> events.Migrated:
    ends = (Device(0), HOST) if back else (HOST, Device(0))
    return events.Migrated(address, nbytes, *ends, cause, at, at)


def test_a_block_is_charged_with_its_line_and_the_shape_that_a_scope_was_given() -> None:
    operand = events.Operand(PAGE, 8000, (1000,), "float64")
    (found,) = charge(
        stamped(
            events.Made(PAGE, 2 * PAGE, "a.py:3"),
            events.Began(1, "prefetch", "", "a.py:4", arrays=(operand,)),
            moved(2.0, PAGE, 2 * PAGE, "prefetch"),
            events.Faulted(PAGE, PAGE, Device(0), 2, None, 3.0),
            moved(4.0, PAGE, PAGE, back=True),
            events.Faulted(PAGE, PAGE, HOST, 1, None, 5.0),
        )
    )
    assert (found.line, found.shape, found.dtype, found.shown) == ("a.py:3", (1000,), "float64", "float64[1000]")
    assert (found.bytes_to_device, found.prefetched_bytes, found.bytes_to_host) == (2 * PAGE, 2 * PAGE, PAGE)
    assert (found.device_faults, found.host_faults, found.faults) == (2, 1, 3)


def test_one_record_over_two_arrays_is_shared_out_by_bytes() -> None:
    first, second = charge(
        stamped(
            events.Made(0, 3 * PAGE, "a.py:1"),
            events.Made(3 * PAGE, PAGE, "a.py:2"),
            moved(2.0, 0, 4 * PAGE),
            events.Faulted(0, 4 * PAGE, Device(0), 8, None, 3.0),
        )
    )
    assert (first.line, first.bytes_to_device, first.device_faults) == ("a.py:1", 3 * PAGE, 6)
    assert (second.line, second.bytes_to_device, second.device_faults) == ("a.py:2", PAGE, 2)


def test_what_lives_at_an_address_later_is_another_array() -> None:
    found = charge(
        stamped(
            events.Made(0, PAGE, "a.py:1"),
            moved(1.0, 0, PAGE),
            events.Gone(0, PAGE),
            events.Made(0, PAGE, "b.py:1"),
            moved(4.0, 0, PAGE, back=True),
        )
    )
    assert {one.line: (one.bytes_to_device, one.bytes_to_host) for one in found} == {
        "a.py:1": (PAGE, 0),
        "b.py:1": (0, PAGE),
    }


def test_what_one_line_makes_at_one_address_again_and_again_is_one_row() -> None:
    records: list[events.Record] = []
    for step in range(3):
        records += [events.Made(0, PAGE, "a.py:1"), moved(3 * step + 1.0, 0, PAGE), events.Gone(0, PAGE)]
    (found,) = charge(stamped(*records))
    assert found.bytes_to_device == 3 * PAGE


def test_an_array_that_no_pool_made_stands_for_itself() -> None:
    operand = events.Operand(8 * PAGE, PAGE, (4, 256), "float32")
    (found,) = charge(stamped(moved(0.0, 8 * PAGE, PAGE), events.Began(1, "move", "", "", arrays=(operand,))))
    assert (found.shape, found.line, found.bytes_to_device) == ((4, 256), "", PAGE)


def test_a_view_is_a_part_of_its_array() -> None:
    whole, part = (events.Named(name, 0, size * PAGE, (size,), "u1") for name, size in (("whole", 4), ("part", 1)))
    assert len(charge(stamped(part, whole, moved(2.0, 0, 4 * PAGE)))) == 1
    assert len(charge(stamped(whole, part, moved(2.0, 0, 4 * PAGE)))) == 1


def test_bytes_of_no_known_array_are_charged_to_none() -> None:
    assert charge(stamped(events.Made(0, PAGE, "a.py:1"), moved(1.0, 64 * PAGE, PAGE))) == ()


def test_what_does_not_move_is_not_charged() -> None:
    made = events.Migrated(0, PAGE, Device(0), Device(0), "fault", 1.0, 1.0, "made")
    mapped = events.Migrated(0, PAGE, HOST, Device(0), "fault", 1.0, 1.0, "mapped")
    assert charge(stamped(events.Made(0, PAGE, "a.py:1"), made, mapped)) == ()


def test_between_devices_and_the_order_of_rows() -> None:
    across = events.Migrated(PAGE, PAGE, Device(0), Device(1), "fault", 2.0, 2.0)
    found = charge(
        stamped(events.Made(0, PAGE, "little"), events.Made(PAGE, PAGE, "much"), across, moved(3.0, 0, PAGE // 2))
    )
    assert [one.line for one in found] == ["much", "little"]
    assert found[0].bytes_between_devices == found[0].moved_bytes == PAGE


@pytest.mark.watchdog(20)
def test_blocks_that_a_long_loop_makes_at_one_address_are_soon_charged() -> None:
    """Each move is not compared with all that ever lived there: that took more than a minute."""
    records = []
    for step in range(40_000):
        at = 3.0 * step
        records += [
            Stamped(at, 1, events.Made(4096, 4096, "loop.py:1")),
            Stamped(at + 1, 0, events.Migrated(4096, 4096, HOST, Device(0), "fault", at + 1, at + 1)),
            Stamped(at + 2, 1, events.Gone(4096, 4096)),
        ]
    (one,) = charge(records)
    assert one.bytes_to_device == 40_000 * 4096
