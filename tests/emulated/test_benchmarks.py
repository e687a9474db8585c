"""The benchmarks on the emulated device: every way computes the same, and the counts are what they must be."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import pytest

from benchmarks import guard
from umarray import hipemu
from umarray.drivers import get_driver
from umarray.drivers.base import Mode

Rows = dict[tuple[str, str], dict[str, Any]]

managed = pytest.mark.skipif(
    get_driver().mode is not Mode.MANAGED or get_driver().traits(0).unified, reason="no page moves on this machine"
)


@pytest.fixture
def run(monkeypatch: Any, capsys: Any) -> Any:
    """Run a benchmark quickly; its rows by case and variant."""

    def run(name: str) -> Rows:
        before = guard.alive()
        monkeypatch.setattr(sys, "argv", [name, "--quick", "--json"])
        importlib.import_module(f"benchmarks.{name}").main()
        result = json.loads(capsys.readouterr().out)
        assert guard.alive() == before, "managed memory is left"
        assert result["header"]["emulated"] and result["header"]["page_bytes"] == hipemu.page_bytes()
        return {(row["case"], row["variant"]): row for row in result["rows"]}

    return run


@pytest.mark.parametrize("name", ["matmul", "attention"])
def test_ways_of_rounds(run: Any, name: str) -> None:
    rows = run(name)
    assert rows
    for (case, variant), row in rows.items():
        if variant.startswith("explicit") or variant.startswith("umarray, host_view"):
            assert row["device_faults"] == 0, (case, variant)
            assert row["copied_mib"] > 0 or get_driver().traits(0).unified


@managed
@pytest.mark.parametrize("name", ["matmul", "attention"])
def test_a_host_view_costs_what_explicit_copies_cost(run: Any, name: str) -> None:
    rows = run(name)
    for case in dict.fromkeys(case for case, _ in rows):
        demand = rows[case, "managed, on demand"]
        assert demand["device_faults"] > 0 and demand["write_host_faults"] > 0
        assert rows[case, "managed, prefetched"]["device_faults"] == 0
        for view in (rows[case, "umarray, host_view"], rows[case, "umarray, host_view queued"]):
            assert (view["device_faults"], view["to_device_mib"], view["write_host_faults"]) == (0, 0, 0)
            assert view["copied_mib"] == rows[case, "explicit, pinned"]["copied_mib"]
            assert view["ratio"] == 1


@managed
def test_a_table_with_its_role_is_looked_up_without_a_fault(run: Any) -> None:
    rows = run("embedding")
    (case,) = {case for case, _ in rows}
    assert rows[case, "on demand"]["device_faults"] > 0
    moved = rows[case, "umarray, role table"]
    assert (moved["device_faults"], moved["to_device_mib"]) == (0, 1)
    resident = rows[case, "umarray, resident"]
    assert (resident["device_faults"], resident["to_device_mib"]) == (0, 0)


def test_an_epoch_makes_no_driver_allocation_and_no_fault(run: Any) -> None:
    rows = run("epochs")
    for (case, variant), row in rows.items():
        if variant.startswith("umarray") and "one size" in case:
            assert (row["driver_allocations"], row["device_faults"], row["held"]) == (0, 0, 1), (case, variant)


@managed
def test_calls_of_scopes_grow_with_merged_spans(run: Any) -> None:
    rows = run("scopes")
    for count in (1, 10, 100):
        assert rows[f"{count} side by side", "prefetch"]["calls"] == 1
        assert rows[f"{count} a page apart", "prefetch"]["calls"] == count
        assert rows[f"{count} tiny", "prefetch"]["calls"] == 1
        assert rows[f"{count} tiny", "by hand"]["calls"] == count
    assert rows["100 in a tree of dicts", "prefetch"]["calls"] == 1


def test_allocators(run: Any) -> None:
    rows = run("allocators")
    for (case, variant), row in rows.items():
        if variant == "umarray" and "driver_allocations" in row:
            assert row["driver_allocations"] == 0, case
    assert {case for case, _ in rows} >= {
        "training, 2 threads",
        "training, each on the next of 2",
        "1,000 blocks alive",
    }
