from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tables

HEADER = {"device": "Card", "machine": "Processor", "cores": 4, "versions": {"cupy-x": "1.0"}}


def result(benchmark: str, *rows: dict[str, Any], quick: bool = False) -> dict[str, Any]:
    return {"benchmark": benchmark, "quick": quick, "header": HEADER, "rows": list(rows)}


def test_the_readme_holds_what_the_results_say() -> None:
    readme = tables.README.read_text()
    assert tables.replaced(readme, tables.rendered(tables.read_results())) == readme, "run python -m benchmarks.tables"


def test_a_table_has_a_line_a_case_and_ours_first() -> None:
    rows = [
        {"case": "a", "variant": "peer", "ratio": 1.0},
        {"case": "a", "variant": "umarray", "ratio": 0.5, "reserved": 1.1},
        {"case": "b", "variant": "peer", "ratio": 2.0},
        {"case": "end of an epoch", "variant": "after 10", "median_us": 3.0},
    ]
    text = tables.rendered([result("allocators", *rows)])
    assert text.splitlines()[-4:] == [
        "|  | umarray | peer |",
        "| --- | --- | --- |",
        "| a | 0.50 x, 1.10 | 1.00 x |",
        "| b |  | 2.00 x |",
    ]
    assert "Card, Processor with 4 cores, cupy-x 1.0" in text


def test_a_benchmark_without_a_table_is_left_out() -> None:
    assert tables.rendered([result("other", {"case": "a"})]) == ""


def test_a_quick_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(result("allocators", quick=True)))
    with pytest.raises(ValueError, match="--quick"):
        tables.read_results(tmp_path)
