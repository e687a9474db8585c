"""Every benchmark says what it answers, and runs quickly where there is no device, saying what it cannot do there."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.run import EMULATED_ONLY, NAMES
from umarray import drivers
from umarray.drivers.host import HostDriver

FOLDER = Path(__file__).parents[2] / "benchmarks"
HELPERS = {"__init__", "common", "figures", "guard", "rings", "rounds", "run", "tables", "timing", "traces"}
DEVICE_ONLY = {"attention", "embedding", "epochs", "matmul"}


@pytest.fixture(autouse=True)
def host() -> Iterator[None]:
    before = drivers.set_driver(HostDriver(("a test wants it",)))
    yield
    drivers.set_driver(before)


def test_every_benchmark_is_run_by_the_one_that_runs_all() -> None:
    found = {path.stem for path in FOLDER.glob("*.py")} - HELPERS
    assert {name for name in found if hasattr(importlib.import_module(f"benchmarks.{name}"), "main")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_answers(name: str) -> None:
    assert (importlib.import_module(f"benchmarks.{name}").__doc__ or "").strip()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in EMULATED_ONLY])
def test_each_runs_quickly_without_a_device(name: str, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--quick", "--json"])
    importlib.import_module(f"benchmarks.{name}").main()
    result = json.loads(capsys.readouterr().out)
    assert (result["benchmark"], result["quick"]) == (name, True)
    if name in DEVICE_ONLY:
        assert result["rows"] == [] and "host mode" in result["skipped"][0]["why"]
    else:
        assert result["rows"]
