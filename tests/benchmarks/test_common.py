from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from benchmarks import guard
from benchmarks.common import Measured, Report, Timing, guarded, header, parser, size_of
from umarray import drivers
from umarray.drivers.base import Kind
from umarray.drivers.host import HostDriver


@pytest.fixture(scope="module", autouse=True)
def host() -> Iterator[None]:
    """The header is that of a machine without a device, whatever this one has."""
    before = drivers.set_driver(HostDriver(("a test wants it",)))
    yield
    drivers.set_driver(before)


def test_the_header_names_machine_device_driver_and_versions():
    top = header()
    assert top["machine"] and top["cores"] >= 1 and top["memory_bytes"] > 0
    assert (top["driver"], top["mode"], top["device"]) == ("host", "host", "none")
    assert top["versions"]["numpy"] == np.__version__
    json.dumps(top)


def report(tmp_path: Path, *options: str) -> Report:
    return Report("sums", parser("Sums.\n\nMore.").parse_args(options), tmp_path)


def test_a_report_prints_a_table_and_saves_nothing_unasked(tmp_path, capsys):
    one = report(tmp_path)
    one.compare("case 1", {"a": lambda: Measured(0.002), "b": lambda: Measured(0.004)}, per=2)
    assert one.finish() is None
    out = capsys.readouterr().out
    assert out.startswith("sums\n") and "median_ms" in out and "driver" not in out.splitlines()[-1]
    assert [row["median_ms"] for row in one.rows] == [1.0, 2.0]
    assert [row["ratio"] for row in one.rows] == [1.0, 2.0]
    assert not list(tmp_path.iterdir())


def test_a_saved_result_can_be_read_back(tmp_path, capsys):
    one = report(tmp_path, "--json", "--save", "--repetitions", "3")
    one.add("case", "variant", Timing(2e-6, 1e-6, 3e-6, 3), unit="us", bytes=4)
    path = one.finish()
    assert path is not None and path.name == "sums-host.json"
    saved = json.loads(path.read_text())
    assert saved == json.loads(capsys.readouterr().out)
    row = {"case": "case", "variant": "variant", "repetitions": 3, "bytes": 4}
    assert saved["rows"] == [row | {"median_us": 2.0, "low_us": 1.0, "high_us": pytest.approx(3.0)}]
    assert saved["header"]["versions"]


def test_a_quick_run_is_not_saved(tmp_path):
    with pytest.raises(SystemExit, match="quick"):
        report(tmp_path, "--quick", "--save")


def test_a_report_without_a_row_still_prints(tmp_path, capsys):
    report(tmp_path, "--quick").finish()
    assert "no measurement" in capsys.readouterr().out


def test_the_command_line_is_described_by_its_first_line():
    assert isinstance(parser("One.\nTwo."), argparse.ArgumentParser)
    assert parser("One.\nTwo.").description == "One."


def test_what_is_not_here_is_told_and_kept(tmp_path, capsys):
    one = report(tmp_path, "--save")
    one.skip("this", "there is no such device")
    path = one.finish()
    assert "not here: this (there is no such device)" in capsys.readouterr().out
    assert json.loads(path.read_text())["skipped"] == [{"what": "this", "why": "there is no such device"}]


def test_a_result_says_when_it_was_measured(tmp_path):
    path = report(tmp_path, "--save").finish()
    assert datetime.strptime(json.loads(path.read_text())["measured"], "%Y-%m-%dT%H:%M:%SZ").year >= 2024


def test_counts_take_the_place_of_seconds(tmp_path):
    one = report(tmp_path)
    variants = {
        name: lambda cost=cost: Measured(0.5, counts={"device_faults": 3, "modelled_ms": cost})
        for name, cost in (("first", 2.0), ("other", 1.0))
    }
    one.compare("case", variants)
    assert one.rows == [
        {"case": "case", "variant": "first", "device_faults": 3, "modelled_ms": 2.0, "ratio": 1.0},
        {"case": "case", "variant": "other", "device_faults": 3, "modelled_ms": 1.0, "ratio": 0.5},
    ]


def test_other_spans_are_columns_in_the_same_unit(tmp_path):
    one = report(tmp_path)
    one.compare("case", {"a": lambda: Measured(0.002, more={"write": 0.004})}, per=2)
    assert (one.rows[0]["median_ms"], one.rows[0]["write_ms"]) == (1.0, 2.0)


def test_variants_that_cost_nothing_have_no_ratio(tmp_path):
    one = report(tmp_path)
    one.compare("case", {"a": lambda: Measured(0.1, counts={"modelled_ms": 0.0})})
    assert "ratio" not in one.rows[0]


@pytest.mark.parametrize(
    ("nbytes", "text"), [(1 << 30, "1 GiB"), (3 << 20, "3 MiB"), (1536, "1536 B"), (0, "0 B"), (5 << 10, "5 KiB")]
)
def test_sizes_in_the_names_of_cases(nbytes, text):
    assert size_of(nbytes) == text


def test_managed_memory_passes_the_guard_in_a_guarded_block(make_fake, monkeypatch):
    driver = make_fake(poison=False)
    monkeypatch.setattr(guard, "LIMIT", guard.alive())
    with guarded(driver), pytest.raises(guard.TooMuch):
        driver.allocate(4096, Kind.MANAGED)
    driver.free(driver.allocate(4096, Kind.MANAGED))
