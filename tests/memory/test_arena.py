"""The arena against an interval model, with every free byte poisoned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from umarray.memory.arena import UNIT, Arena, round_up

POISON = 0xDB
SIZE = 64 * UNIT


class ArenaMachine(RuleBasedStateMachine):
    """Every byte has a value: the number of the range that has it, or poison; and the owners that used it last."""

    def __init__(self) -> None:
        super().__init__()
        self.arena = Arena(SIZE)
        self.memory = np.full(SIZE, POISON, np.uint16)
        self.used_by: list[set[str]] = [set() for _ in range(SIZE // UNIT)]
        self.live: dict[int, tuple[int, int]] = {}  # number -> offset, nbytes
        self.count = 0x1000

    @rule(nbytes=st.integers(0, SIZE + UNIT), align=st.sampled_from([UNIT, 4 * UNIT, 8 * UNIT]))
    def take(self, nbytes: int, align: int) -> None:
        self._enter(self.arena.take(nbytes, align), max(nbytes, 1), align)

    @rule(most=st.integers(1, SIZE), least=st.integers(1, SIZE))
    def take_largest(self, most: int, least: int) -> None:
        carved = self.arena.take_largest(most, least)
        if carved is not None and carved.nbytes < most:
            assert carved.nbytes >= least // UNIT * UNIT
            self._enter(carved, carved.nbytes, UNIT)
        else:
            self._enter(carved, most if carved is not None else SIZE + 1, UNIT)

    def _enter(self, carved: object, asked: int, align: int) -> None:
        if carved is None:
            self._assert_no_room(asked, align)
            return
        offset, nbytes, fence = carved  # type: ignore[misc]
        assert nbytes == round_up(asked)
        assert offset % align == 0 and 0 <= offset <= SIZE - nbytes
        assert (self.memory[offset : offset + nbytes] == POISON).all(), "handed out twice"
        needed = set().union(*self.used_by[offset // UNIT : (offset + nbytes) // UNIT])
        assert needed <= fence, "a range lost the memory of who used it"
        self.count += 1
        self.memory[offset : offset + nbytes] = self.count
        self.live[self.count] = (offset, nbytes)

    def _assert_no_room(self, asked: int, align: int) -> None:
        free = self.memory == POISON
        for start in range(0, SIZE - round_up(asked) + 1, align):
            assert not free[start : start + round_up(asked)].all(), "there was room"

    @precondition(lambda self: self.live)
    @rule(data=st.data(), owners=st.sets(st.sampled_from("abc"), min_size=1))
    def give(self, data: st.DataObject, owners: set[str]) -> None:
        number = data.draw(st.sampled_from(sorted(self.live)))
        offset, nbytes = self.live.pop(number)
        assert (self.memory[offset : offset + nbytes] == number).all()
        self.memory[offset : offset + nbytes] = POISON
        for unit in range(offset // UNIT, (offset + nbytes) // UNIT):
            self.used_by[unit] = set(owners)
        assert self.arena.give(offset, *owners) == nbytes

    @rule()
    def settle(self) -> None:
        self.arena.settle()
        for unit, held in enumerate(self.memory[::UNIT] != POISON):
            if not held:
                self.used_by[unit] = set()
        assert not self.arena.fence()

    @rule(offset=st.integers(-UNIT, SIZE))
    def give_what_is_not_used(self, offset: int) -> None:
        if all(offset != start for start, _ in self.live.values()):
            with pytest.raises(ValueError, match=str(offset)):
                self.arena.give(offset, "a")

    @invariant()
    def sums(self) -> None:
        held = sum(nbytes for _, nbytes in self.live.values())
        assert self.arena.used_bytes == held
        assert self.arena.free_bytes == SIZE - held
        assert self.arena.whole == (not self.live)
        assert self.arena.high_offset == max((sum(one) for one in self.live.values()), default=0)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], self.memory == POISON, [0]]).astype(int)))
        runs = edges[1::2] - edges[::2]
        assert self.arena.pieces == len(runs), "free neighbours did not merge"
        assert self.arena.largest_free == max(runs, default=0)


TestArena = ArenaMachine.TestCase
TestArena.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


def test_best_fit_and_the_lowest_of_equals() -> None:
    arena = Arena(16 * UNIT)
    taken = [arena.take(size * UNIT) for size in (3, 1, 2, 1, 2, 1)]
    for index in (0, 2, 4):
        arena.give(taken[index].offset, "a")
    assert arena.take(2 * UNIT).offset == taken[2].offset  # not the three units at the start
    assert arena.take(2 * UNIT).offset == taken[4].offset
    assert arena.take(2 * UNIT).offset == taken[0].offset


def test_a_growing_buffer_among_temporaries_stays_near_its_peak() -> None:
    arena = Arena(64 << 20)
    old = None
    peak = 0
    for step in range(1, 400):
        small = [arena.take(1024 * (1 + index)) for index in range(6)]
        new = arena.take(step << 14)
        peak = max(peak, arena.used_bytes)
        if old is not None:
            arena.give(old.offset, "a")
        old = new
        for one in small:
            arena.give(one.offset, "a")
        assert arena.high_offset <= 2 * peak
