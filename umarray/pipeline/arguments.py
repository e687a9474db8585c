"""Checks of what a pipeline is made with."""

from __future__ import annotations

import inspect
from typing import Any

MOST = 65_536
"""Slots or workers: more is a mistake, and would use up all memory before it showed."""


def check_count(name: str, value: Any, least: int, why: str) -> int:
    """A count as an int. Raises `TypeError` or `ValueError`."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be an int, not {value!r}")
    count = int(value.__index__())
    if count < least:
        raise ValueError(f"{name} must be {least} or more ({why}), not {value!r}")
    if count > MOST:
        raise ValueError(f"{name} must be {MOST} or less, not {value!r}")
    return count


def check_function(name: str, value: Any) -> None:
    """See that calling `value`, where it is not None, runs it. Raises `TypeError`."""
    if value is None:
        return
    if not callable(value):
        raise TypeError(f"{name} must be a function or None, not {value!r}")
    if inspect.isgeneratorfunction(value) or inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value):
        raise TypeError(f"{name} must be a plain function: calling {value!r} would not run its body")
