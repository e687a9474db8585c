from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import umarray as um
from umarray import events
from umarray.pipeline.shown import shown


def test_nobody_listening_costs_a_truth_test() -> None:
    assert shown("prep", 3) is shown("compute", 4)


def test_a_stage_begins_and_ends_also_when_it_raises(told: list[Any]) -> None:
    with pytest.raises(KeyError), shown("prep", 3):
        raise KeyError
    began, ended = told
    assert (began.action, began.label, ended.serial, ended.action) == ("prep", "3", began.serial, "prep")


def test_the_stages_of_a_pipeline_are_told(told: list[Any]) -> None:
    items = [np.full(4, index, "f4") for index in range(3)]
    with um.Pipeline(items, compute=lambda batch: None) as pipeline:
        for _ in pipeline:
            pass
    began = [one for one in told if isinstance(one, events.Began)]
    for stage in ("prep", "compute"):
        assert [one.label for one in began if one.action == stage] == ["0", "1", "2"]
    assert {one.serial for one in began} == {one.serial for one in told if isinstance(one, events.Ended)}
