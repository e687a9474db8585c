"""Where pages were, worked out from what migrated."""

from __future__ import annotations

from bisect import bisect_right

from umarray.events import Began, Migrated, Named, Operand, Record
from umarray.observe.residence import MOST_TIMES, Residence, residences
from umarray.places import HOST, Device, Place

KIB = 1024
D0, D1 = Device(0), Device(1)


def moved(at: float, address: int, nbytes: int, source: Place, to: Place, kind: str = "moved") -> tuple[float, Record]:
    return at, Migrated(address, nbytes, source, to, "fault", at, at + 0.5, kind)


def named(name: str, address: int, nbytes: int) -> tuple[float, Record]:
    return 0.0, Named(name, address, nbytes, (nbytes,), "uint8")


def at(one: Residence, time: float) -> tuple[int, ...]:
    return one.bytes_at[bisect_right(one.times, time) - 1]


def test_there_and_back_again() -> None:
    (one,) = residences(
        [
            named("x", 0, 64 * KIB),
            moved(1, 0, 32 * KIB, HOST, D0),
            moved(2, 32 * KIB, 32 * KIB, HOST, D0),
            moved(3, 0, 16 * KIB, D0, HOST),
        ]
    )
    assert (one.name, one.nbytes, one.devices) == ("x", 64 * KIB, (0,))
    assert one.times[0] == 1 and one.times[-1] == 3.5
    assert [at(one, time) for time in (1, 1.5, 2.9, 3.9)] == [(0,), (32 * KIB,), (64 * KIB,), (48 * KIB,)]


def test_the_pages_of_a_run_go_one_after_another() -> None:
    (one,) = residences([named("x", 0, 64 * KIB), moved(1, 0, 64 * KIB, HOST, D0), moved(1.1, 0, 4 * KIB, D0, HOST)])
    assert at(one, 1.25) == (32 * KIB,)
    assert at(one, 2) == (60 * KIB,)


def test_many_moves_are_told_in_few_times_and_the_last_holds() -> None:
    there = [moved(index, 4096 * (index % 16), 4096, HOST, D0) for index in range(9000)]
    back = [moved(index + 0.5, 4096 * (index % 16), 4096, D0, HOST) for index in range(9000)]
    told = [move for pair in zip(there, back, strict=True) for move in pair]
    told += [moved(9000 + index / 1000, 4096 * index, 4096, HOST, D0) for index in range(5)]
    (one,) = residences([named("x", 0, 64 * KIB), *told])
    assert len(one.times) <= MOST_TIMES + 2
    assert one.bytes_at[-1] == (5 * 4096,)


def test_what_first_moves_away_was_there_before() -> None:
    (one,) = residences([named("x", 0, 64 * KIB), moved(1, 0, 16 * KIB, D0, HOST)])
    assert (one.bytes_at[0], one.bytes_at[-1]) == ((16 * KIB,), (0,))


def test_copies_lie_at_both_until_one_is_dropped() -> None:
    (one,) = residences(
        [
            named("x", 0, 4 * KIB),
            moved(1, 0, 4 * KIB, HOST, D0, "made"),
            moved(2, 0, 4 * KIB, D0, D1, "copied"),
            moved(3, 0, 4 * KIB, D0, D1, "dropped"),
            moved(4, 0, 4 * KIB, D0, D1, "mapped"),
        ]
    )
    four = 4 * KIB
    assert one.bytes_at == ((0, 0), (four, 0), (four, four), (four, 0), (four, four))
    assert one.times == (1, 1.5, 2.5, 3.5, 4.5)


def test_moves_count_for_the_part_that_is_the_arrays() -> None:
    first, second = residences(
        [named("a", 0, 6 * KIB), named("b", 6 * KIB, 2 * KIB), moved(1, 0, 1 << 20, HOST, D0)],
    )
    assert (first.name, first.bytes_at[-1]) == ("a", (6 * KIB,))
    assert (second.name, second.bytes_at[-1]) == ("b", (2 * KIB,))


def test_the_largest_that_moved_with_a_name_before_shape_and_without_views() -> None:
    operands = (Operand(0, 64 * KIB, (8, 8192), "uint8"), Operand(1 << 20, 8 * KIB, (8192,), "uint8"))
    found = residences(
        [
            (0.0, Began(1, "prefetch", "", "", None, None, operands)),
            named("table", 0, 64 * KIB),
            named("view", KIB, KIB),
            named("still", 1 << 30, 1 << 20),
            moved(1, 0, 64 * KIB, HOST, D0),
            moved(1, 1 << 20, 4 * KIB, HOST, D0),
        ]
    )
    assert [one.name for one in found] == ["table", "8192 uint8"]
    assert len(residences([named("a", 0, KIB), named("b", KIB, KIB), moved(1, 0, 2 * KIB, HOST, D0)], most=1)) == 1


def test_nothing_moved() -> None:
    assert residences([named("x", 0, KIB)]) == () and residences([]) == ()
