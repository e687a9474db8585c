from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import figures, tables

HEADER = {"device": "Card", "machine": "Processor", "cores": 4, "versions": {"cupy-x": "1.0"}}


def result(benchmark: str, *rows: dict[str, Any], quick: bool = False) -> dict[str, Any]:
    return {"benchmark": benchmark, "quick": quick, "header": HEADER, "rows": list(rows)}


def test_the_readme_holds_what_the_results_say() -> None:
    readme = tables.README.read_text()
    results = tables.read_results()
    section = tables.rendered(results, figures.names(results))
    assert tables.replaced(readme, section) == readme, "run python -m benchmarks.tables"


def test_a_table_has_a_line_a_case_and_ours_first() -> None:
    rows = [
        {"case": "a", "variant": "peer", "ratio": 1.0},
        {"case": "a", "variant": "umarray", "ratio": 0.5, "reserved": 1.1},
        {"case": "b", "variant": "peer", "ratio": 2.0},
        {"case": "end of an epoch", "variant": "after 10", "median_us": 3.0},
    ]
    text = tables.rendered([result("allocators", *rows)])
    assert text.splitlines()[-6:] == [
        "|  | umarray | peer |",
        "| --- | --- | --- |",
        "| a | 0.50 x, 1.10 | 1.00 x |",
        "| b |  | 2.00 x |",
        "",
        "(Processor, 4 cores; cupy-x 1.0.)",
    ]
    assert text.startswith("### Card\n")


def test_a_device_has_one_title_and_the_emulated_one_comes_last() -> None:
    emulated = result("matmul", {"case": "a", "variant": "b", "median_ms": 1.0})
    emulated["header"] = HEADER | {"device": "A card (emulated)"}
    rows = {"case": "a", "variant": "b", "median_ms": 1.0}
    text = tables.rendered([emulated, result("matmul", rows), result("attention", rows)])
    titles = [line for line in text.splitlines() if line.startswith("###")]
    assert titles == ["### Card", "### A card (emulated)"]


def test_what_grows_has_a_table_of_its_own() -> None:
    rows = [
        {"case": case, "variant": "umarray", "ratio": 0.5, "median_ns": 1234.5}
        for case in ("training, 1 stream", "training, 8 threads", "1,000 blocks alive")
    ]
    first, second = tables.rendered([result("allocators", *rows)]).split("The same as")
    assert "| training, 1 stream | 0.50 x |" in first and "threads" not in first
    assert "| 1,000 blocks alive | 1,234 (0.50 x) |" in second


def test_a_benchmark_without_a_table_is_left_out() -> None:
    assert tables.rendered([result("other", {"case": "a"})]) == ""


def test_a_quick_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(result("allocators", quick=True)))
    with pytest.raises(ValueError, match="--quick"):
        tables.read_results(tmp_path)


def test_of_two_measurements_of_one_device_the_newer_counts(tmp_path: Path) -> None:
    old, new = (result("matmul", {"case": name}) | {"measured": when} for name, when in (("old", "1"), ("new", "2")))
    (tmp_path / "a.json").write_text(json.dumps({"benchmark": "all", "quick": False, "results": [new]}))
    (tmp_path / "b.json").write_text(json.dumps(old))
    (tmp_path / "c.json").write_text(json.dumps(result("matmul", {"case": "oldest"})))
    assert [row["case"] for one in tables.read_results(tmp_path) for row in one["rows"]] == ["new"]


@pytest.mark.parametrize("name", ["matmul", "attention"])
def test_seconds_with_their_ratio_or_faults_and_modelled_time(name: str) -> None:
    rows = [
        {"case": "a", "variant": "explicit", "median_ms": 0.1234, "ratio": 1.0},
        {"case": "b", "variant": "explicit", "device_faults": 3, "host_faults": 2, "modelled_ms": 0.5},
    ]
    text = tables.rendered([result(name, *rows)])
    assert "| a | 0.123 ms (1.00 x) |" in text and "| b | 5 faults, 0.50 ms modelled |" in text


def test_epochs_and_scopes() -> None:
    epochs = {"case": "a", "variant": "umarray, an epoch", "median_ms": 0.25, "held": 1.04}
    scopes = {"case": "b", "variant": "prefetch", "median_us": 2.26, "driver_us": 1.0, "calls": 1000}
    text = tables.rendered([result("epochs", epochs), result("scopes", scopes)])
    assert "| a | 0.250 ms, holds 1.0 |" in text and "| b | 2.3 (1.0), 1,000 calls |" in text


def test_a_result_without_rows_has_no_table() -> None:
    assert tables.rendered([result("matmul")]) == ""


def test_look_ups_say_how_much_faster_they_are() -> None:
    rows = [{"case": "a", "variant": f"v{ratio}", "median_ms": 20.0, "ratio": ratio} for ratio in (1.0, 0.002)]
    assert "| a | 20 ms | 20 ms (500 x faster) |" in tables.rendered([result("embedding", *rows)])
