from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common import Disagreement, Measured, Report, Timing, check_same, header, interleaved, parser
from umarray import drivers
from umarray.drivers.host import HostDriver

FOLDER = Path(__file__).parents[2] / "benchmarks"
ELSEWHERE = ("__init__", "common", "guard", "oversubscribe", "tables")  # no benchmarks, and one that needs a device
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ELSEWHERE)


@pytest.fixture(scope="module", autouse=True)
def host() -> Iterator[None]:
    """The header is that of a machine without a device, whatever this one has."""
    before = drivers.set_driver(HostDriver(("a test wants it",)))
    yield
    drivers.set_driver(before)


def test_a_timing_is_the_median_between_its_quartiles():
    timing = Timing.of([5.0, 1.0, 2.0, 4.0, 3.0])
    assert timing == Timing(3.0, 2.0, 4.0, 5)
    assert timing.per(2) == Timing(1.5, 1.0, 2.0, 5)


def test_no_run_is_no_timing():
    with pytest.raises(ValueError, match="no run"):
        Timing.of([])


def test_variants_take_turns_and_each_round_starts_at_another():
    order = []
    variants = {name: lambda name=name: order.append(name) for name in "abc"}
    interleaved(variants, 3, warmup=0)
    assert "".join(order) == "abcbcacab"


def test_warmup_is_not_timed():
    seconds = iter([100.0, 1.0, 2.0, 3.0])
    timing = interleaved({"only": lambda: Measured(next(seconds))}, 3, warmup=1)["only"]
    assert timing == Timing(2.0, 1.5, 2.5, 3)


def test_finish_is_inside_the_timed_span():
    calls = []
    interleaved({"only": lambda: calls.append("run")}, 2, warmup=0, finish=lambda: calls.append("finish"))
    assert calls == ["run", "finish"] * 2


@pytest.mark.parametrize("repetitions", [0, -1])
def test_no_repetition_is_refused(repetitions):
    with pytest.raises(ValueError, match=f"not {repetitions}"):
        interleaved({"only": lambda: None}, repetitions)


@pytest.mark.parametrize(
    "other, told",
    [([1.0, 2.5], "by 0.5"), ([1.0, float("nan")], "by nan"), ([1.0], "shape"), (None, "shape")],
)
def test_another_result_is_a_disagreement(other, told):
    with pytest.raises(Disagreement, match=told):
        interleaved({"good": lambda: np.array([1.0, 2.0]), "bad": lambda: other}, 1, tolerance=0.1)


def test_results_within_the_tolerance_agree():
    check_same({"a": [np.array([1.0, 100.0]), 3], "b": [np.array([1.5, 100.0]), 3]}, tolerance=0.01)
    check_same({"a": None, "b": None})


def test_not_compared_when_told_so():
    assert set(interleaved({"a": lambda: 1, "b": lambda: 2}, 1, tolerance=None)) == {"a", "b"}


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


@pytest.mark.parametrize("name", NAMES)
def test_each_benchmark_says_what_it_answers(name):
    assert (importlib.import_module(f"benchmarks.{name}").__doc__ or "").strip()


@pytest.mark.parametrize("name", NAMES)
def test_each_benchmark_runs_quickly(name):
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", f"benchmarks.{name}", "--quick", "--json"],
        cwd=FOLDER.parent,
        env={**os.environ, "UMARRAY_MODE": "host"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["benchmark"] == name
