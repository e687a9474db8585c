from __future__ import annotations

import pytest

from umarray.events import StageRan
from umarray.observe.pictures.timeline import last_batches, timeline

pytest.importorskip("matplotlib")


def ran(batches: int, *stages: str) -> list[StageRan]:
    return [
        StageRan(stage, index, 10 + index + row / 10, 11 + index + row / 10)
        for index in range(batches)
        for row, stage in enumerate(stages)
    ]


def test_the_last_batches() -> None:
    records = [StageRan(stage, index, 0.0, 1.0) for index in range(20) for stage in ("a", "b")]
    assert [record.index for record in last_batches(records, 3)] == [17, 17, 18, 18, 19, 19]
    assert last_batches([], 3) == []


def test_a_row_a_stage_and_a_numbered_bar_a_batch() -> None:
    (axes,) = timeline(ran(20, "source", "prep", "transfer", "compute"), batches=5, title="mine").figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["prep", "transfer", "compute"]
    assert len(axes.patches) == 15
    assert sorted(text.get_text() for text in axes.texts) == sorted(str(n) for n in range(15, 20) for _ in range(3))
    first = axes.patches[0]
    assert first.get_x() == pytest.approx(0.0) and first.get_width() == pytest.approx(1000.0)
    assert axes.get_xlabel().endswith("(ms)") and axes.get_title() == "mine"
    assert len({bar.get_hatch() for bar in axes.patches}) == 3  # stages are told apart without colour


def test_a_stage_that_did_nothing_says_so() -> None:
    (axes,) = timeline(ran(2, "prep", "compute", "out")).figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["prep", "transfer", "compute", "out"]
    assert "nothing to do" in [text.get_text() for text in axes.texts]


def test_the_number_of_a_narrow_bar_stands_beside_it() -> None:
    records = [StageRan("prep", 0, 0.0, 1.0), StageRan("transfer", 0, 1.0, 1.001), StageRan("transfer", 1, 1.0, 1.001)]
    (axes,) = timeline(records).figure.axes
    assert [text.get_position()[1] for text in axes.texts if text.get_text() in "01"] == [0, 1 - 0.37, 1 + 0.37]


def test_nothing_to_draw_is_told() -> None:
    with pytest.raises(ValueError, match="no stage"):
        timeline([])
