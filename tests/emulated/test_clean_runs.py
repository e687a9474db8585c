"""Programs that are as they should be: `explain` finds nothing in them."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from umarray import cli, drivers
from umarray.drivers.base import Mode
from umarray.observe.explain import explain
from umarray.observe.watch import watch

EXAMPLES = ["data_loader_after", "embedding", "out_of_core", "stencil", "training_scopes"]


@pytest.fixture(autouse=True)
def _migrating() -> None:
    driver = drivers.get_driver()
    if driver.mode is not Mode.MANAGED or driver.traits(0).unified:
        pytest.skip("nothing migrates on this machine")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name: str, repository: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "path", [str(repository / "examples"), *sys.path])
    with watch(sync=True) as w:
        runpy.run_path(str(repository / "examples" / f"{name}.py"), run_name="__main__")
    found = explain(w)
    assert not found, str(found)
    assert found.lost == 0


def test_the_demo(capsys: Any) -> None:
    pytest.importorskip("sklearn")
    with watch(sync=True) as w:
        assert cli.main(["demo", "--epochs", "1"]) == 0
    found = explain(w)
    assert not found, str(found)
