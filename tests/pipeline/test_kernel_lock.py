"""Whether parallel kernels have to take turns."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from umarray.pipeline import kernel_lock


def layer(name: str) -> Any:
    def choose() -> int:
        if name == "broken":
            raise ValueError("no such layer")
        return 4

    return SimpleNamespace(get_num_threads=choose, threading_layer=lambda: name)


@pytest.mark.parametrize(("name", "locked"), [("omp", False), ("tbb", False), ("workqueue", True), ("broken", True)])
def test_turns_are_taken_where_the_layer_cannot_run_two(
    monkeypatch: pytest.MonkeyPatch, name: str, locked: bool
) -> None:
    monkeypatch.setattr(kernel_lock, "_safe", None)
    monkeypatch.setitem(sys.modules, "numba", layer(name))
    assert (kernel_lock.kernel_turn() is kernel_lock._lock) == locked


def test_without_numba_there_are_no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_lock, "_safe", None)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert kernel_lock.kernel_turn() is kernel_lock._free
    assert kernel_lock._safe is None
