"""The first error is kept, and told where it comes from."""

from __future__ import annotations

import pytest

from umarray.errors import PipelineError
from umarray.pipeline.first_error import FirstError


def test_the_first_one_is_kept_once() -> None:
    failure, first = FirstError(), LookupError("first")
    failure.keep("prep", 3, first)
    failure.keep("compute", 1, ArithmeticError("second"))
    assert failure.error is first and failure.take() is first
    assert failure.take() is None


@pytest.mark.parametrize(("index", "where"), [(3, " of batch 3"), (-1, "")])
def test_it_says_its_stage_and_batch(index: int, where: str) -> None:
    failure = FirstError()
    failure.keep("prep", index, LookupError())
    assert getattr(failure.error, "__notes__", [f"raised in the stage 'prep'{where} of an umarray.Pipeline"]) == [
        f"raised in the stage 'prep'{where} of an umarray.Pipeline"
    ]


def test_stop_iteration_would_end_a_loop_quietly() -> None:
    failure, cause = FirstError(), StopIteration(4)
    failure.keep("compute", 0, cause)
    assert isinstance(failure.error, PipelineError) and failure.error.__cause__ is cause
