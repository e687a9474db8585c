"""What a pipeline cannot be made with."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from umarray.pipeline.arguments import MOST, check_count, check_function


@pytest.mark.parametrize("value", [2, MOST, np.int64(2)])
def test_a_count_is_an_int_of_python(value: Any) -> None:
    assert type(check_count("slots", value, 2, "why")) is int


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (1, ValueError, r"slots must be 2 or more \(why\), not 1"),
        (2**63, ValueError, f"slots must be {MOST} or less, not {2**63}"),
        (2.0, TypeError, "slots must be an int, not 2.0"),
        (True, TypeError, "slots must be an int, not True"),
        ("3", TypeError, "slots must be an int, not '3'"),
    ],
)
def test_a_count_that_makes_no_sense_is_refused(value: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        check_count("slots", value, 2, "why")


def test_what_runs_when_it_is_called_is_a_function() -> None:
    for value in (None, len, functools.partial(len, ()), lambda: None):
        check_function("prep", value)


def test_a_function_whose_call_runs_nothing_is_refused() -> None:
    def generator(item: Any, slot: Any) -> Any:
        slot["x"][...] = item
        yield

    async def coroutine(item: Any, slot: Any) -> None:
        slot["x"][...] = item

    for value in (generator, coroutine):
        with pytest.raises(TypeError, match="prep must be a plain function.*would not run its body"):
            check_function("prep", value)
    with pytest.raises(TypeError, match="prep must be a function or None, not 3"):
        check_function("prep", 3)
