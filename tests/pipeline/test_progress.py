"""A bar only where it is wanted and can be."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from umarray.pipeline.progress import VARIABLE, progress_bar


def test_it_knows_the_length_where_the_source_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for source, total in (([1, 2, 3], 3), (iter([1]), None)):
        bar = progress_bar(True, source)
        assert bar.total == total
        bar.close()


@pytest.mark.parametrize("value", ["0", "false", ""])
def test_the_environment_switches_it_off(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert progress_bar(True, [1]) is None


def test_without_tqdm_or_unasked_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert progress_bar(False, [1]) is None
    monkeypatch.setitem(sys.modules, "tqdm", None)  # type: ignore[arg-type]
    assert progress_bar(True, [1]) is None


def test_a_length_that_fails_is_no_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)

    class Odd:
        def __len__(self) -> Any:
            return "three"

    bar = progress_bar(True, Odd())
    assert bar.total is None
    bar.close()
