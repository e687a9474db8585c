"""What moved, shared out to arrays."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from tests.observe.findings.made_up import BASE, GPU, PAGE, in_order, moved, named
from umarray.observe.facts import Facts, Made, Move, Named
from umarray.observe.subjects import NOBODY, History, histories
from umarray.places import HOST


def of(moves: Iterable[Move], named: Iterable[Named] = (), made: Iterable[Made] = ()) -> dict[str, History]:
    facts = Facts(page=PAGE, moves=in_order(moves), named=tuple(named), made=tuple(made))
    return {one.subject.name: one for one in histories(facts)}


def block(at: float, first: int, pages: int, line: str, gone: float | None = None, name: str = "") -> Made:
    return Made(at, BASE + first * PAGE, pages * PAGE, line, gone, name)


def pages_of(history: History) -> list[tuple[int, int]]:
    return [((move.address - BASE) // PAGE, move.nbytes // PAGE) for move in history.moves]


def test_a_run_over_two_arrays_is_cut_with_its_faults() -> None:
    found = of([moved(0, 10, HOST, GPU)], [named("a", 0, 4), named("b", 4, 6)])
    assert (pages_of(found["a"]), pages_of(found["b"])) == ([(0, 4)], [(4, 6)])
    assert (found["a"].moves[0].faults, found["b"].moves[0].faults) == (4, 6)


def test_pages_of_nobody_are_told_apart() -> None:
    found = of([moved(0, 10, HOST, GPU)], [named("a", 3, 4)])
    assert pages_of(found[""]) == [(0, 3), (7, 3)] and found[""].subject is NOBODY
    assert str(NOBODY) == "memory that no array is known for"


def test_a_page_that_two_share_belongs_to_the_larger_part_and_is_contested() -> None:
    first = Named("first", BASE, PAGE + 3000, (PAGE + 3000,), "uint8")
    second = Named("second", BASE + PAGE + 3072, 500, (500,), "uint8")
    found = of([moved(0, 2, HOST, GPU)], [first, second])
    assert [(one.move.nbytes, one.contested) for one in found["first"].shares] == [(PAGE, False), (PAGE, True)]
    assert "second" not in found
    little = Named("little", BASE, 500, (500,), "uint8")
    large = Named("large", BASE + 512, 3000, (3000,), "uint8")
    assert list(of([moved(0, 1, HOST, GPU)], [little, large])) == ["large"]


def test_what_a_driver_moved_along_goes_with_the_array_that_was_touched() -> None:
    facts = Facts(page=PAGE, grain=16 * PAGE, moves=in_order([moved(0, 16, HOST, GPU)]), named=(named("a", 3, 2),))
    (one,) = histories(facts)
    assert pages_of(one) == [(0, 16)]
    facts = Facts(page=PAGE, grain=4 * PAGE, moves=in_order([moved(0, 16, HOST, GPU)]), named=(named("a", 3, 2),))
    assert [one.subject.name for one in histories(facts)] == ["a", ""]


def test_blocks_count_only_while_they_live() -> None:
    made = [block(0.0, 0, 4, "a.py:1", 1.5e-3, "early"), block(1.6e-3, 0, 4, "b.py:2", None, "late")]
    found = of([moved(0, 4, HOST, GPU), moved(0, 4, GPU, HOST)], made=made)
    assert [move.to for move in found["early"].moves] == [GPU]
    assert [move.to for move in found["late"].moves] == [HOST]


def test_what_happens_after_a_block_has_gone_is_nobodys() -> None:
    found = of([moved(0, 4, HOST, GPU), moved(0, 4, GPU, HOST)], made=[block(0.0, 0, 4, "a.py:1", 1.5e-3, "x")])
    assert [move.to for move in found["x"].moves] == [GPU] and [move.to for move in found[""].moves] == [HOST]


def test_what_one_line_makes_again_and_again_is_one_subject() -> None:
    made = [block(1e-3 * turn, 0, 4, "a.py:1", 1e-3 * (turn + 1) - 1e-6, "batch") for turn in range(1, 6)]
    found = of([moved(0, 4, HOST, GPU) for _ in range(5)], made=made)
    assert list(found) == ["batch"] and len(found["batch"].shares) == 5
    assert found["batch"].subject.count == 5
    assert str(found["batch"].subject) == "batch (16.0 KiB), 5 of them, made at a.py:1"


def test_a_name_gives_its_block_name_and_shape() -> None:
    found = of([moved(0, 4, HOST, GPU)], [named("table", 0, 4)], [block(0.0, 0, 4, "a.py:1", name="x")])
    assert str(found["table"].subject) == "table (uint8[4, 4096]), made at a.py:1"


def test_an_operand_without_a_name_gives_its_shape() -> None:
    shape = Named("", BASE, 4 * PAGE, (2, 2 * PAGE), "uint8")
    found = of([moved(0, 4, HOST, GPU)], [shape], [block(0.0, 0, 4, "a.py:1", name="x")])
    assert found["x"].subject.shape == (2, 2 * PAGE)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=12),
    st.lists(st.tuples(st.integers(0, 30 * PAGE), st.integers(1, 4 * PAGE)), max_size=8),
)
def test_no_page_is_lost_and_none_is_charged_twice(runs: list[tuple[int, int]], arrays: list[tuple[int, int]]) -> None:
    at, lies = 0, []
    for number, (gap, nbytes) in enumerate(arrays):  # one behind the other, as memory is handed out
        at += gap % (3 * PAGE)
        lies.append(Named(f"x{number}", BASE + at, nbytes, (nbytes,), "uint8"))
        at += nbytes
    moves = in_order(moved(first, pages, HOST, GPU) for first, pages in runs)
    found = histories(Facts(page=PAGE, moves=moves, named=tuple(lies)))
    for number, move in enumerate(moves):
        parts = sorted(
            (share.move.address, share.move.stop)
            for history in found
            for share in history.shares
            if share.number == number
        )
        assert parts[0][0] == move.address and parts[-1][1] == move.stop
        assert all(before[1] == after[0] for before, after in zip(parts, parts[1:], strict=False))
