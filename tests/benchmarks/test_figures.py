"""The figures are those of the results, by the stamp that each carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import figures, tables


def result(benchmark: str, *rows: dict[str, Any], device: str = "Card") -> dict[str, Any]:
    return {"benchmark": benchmark, "header": {"device": device}, "rows": list(rows)}


ROWS = (
    {"case": "512", "variant": "explicit, pinned", "ratio": 1.0, "median_ms": 1.0},
    {"case": "512", "variant": "explicit, pageable", "ratio": 3.0, "median_ms": 3.0},
    {"case": "512", "variant": "umarray, host_view", "ratio": 1.1, "median_ms": 1.1},
    {"case": "1024", "variant": "umarray, host_view", "median_ms": 1.1},
)


def test_the_figures_show_what_the_results_say() -> None:
    results = tables.read_results()
    for name, (bars, _) in figures.FIGURES.items():
        if bars(results):
            shown = figures.stamp_in(figures.FOLDER / f"{name}.svg")
            assert shown == figures.stamp(bars(results)), "run python -m benchmarks.tables"


def test_bars_are_of_a_real_device_and_of_the_rows_that_have_the_number() -> None:
    emulated = result("matmul", *ROWS, device="Card (emulated)")
    found = figures.ways([emulated, result("attention"), result("matmul", *ROWS), result("epochs", *ROWS)])
    assert found == {"512": {"explicit, pinned": 1.0, "umarray, host_view": 1.1}}


def test_without_numbers_there_is_no_figure() -> None:
    assert figures.names([]) == []


def test_a_figure_is_the_same_for_the_same_numbers_and_carries_their_stamp(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = [result("matmul", *ROWS)]
    for name in ("a", "b"):
        assert figures.draw_all(results, tmp_path / name) == ["benchmarks/figures/ways.svg"]
    first, second = (tmp_path / name / "ways.svg" for name in ("a", "b"))
    assert first.read_text() == second.read_text()
    assert figures.stamp_in(first) == figures.stamp(figures.ways(results))
    assert figures.stamp(figures.ways([result("matmul", *ROWS[:1])])) != figures.stamp_in(first)
