"""Pools that are kept until nothing of them is in use."""

from __future__ import annotations

from umarray.memory import lingering


class Pool:
    def __init__(self, turns: int) -> None:
        self.turns = turns

    def finish(self) -> bool:
        self.turns -= 1
        if self.turns == 1:
            raise OSError("a device in error")
        return self.turns <= 0


def test_each_is_asked_until_it_is_done_and_errors_are_no_end() -> None:
    before = lingering.sweep()
    pools = [Pool(1 + 2 * number) for number in range(3)]
    pools[0].turns = 0
    for pool in pools:
        lingering.keep(pool)
    counts = [lingering.sweep() - before for _ in range(6)]
    assert counts == [2, 2, 1, 1, 0, 0]
    assert lingering.kept() == before
