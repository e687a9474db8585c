"""The line of the program outside umarray that is running: where a warning belongs."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from typing import Any

from umarray.lines import called

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a program; `registry` is its module's, by which Python shows a warning once a line."""

    filename: str
    number: int
    registry: dict[Any, Any] | None

    def __str__(self) -> str:
        return called(f"{self.filename}:{self.number}")

    def warn(self, message: str, category: type[Warning]) -> None:
        """Warn as if this line had called `warnings.warn`."""
        warnings.warn_explicit(message, category, self.filename, self.number, registry=self.registry)


def calling_line() -> Line:
    """The innermost line on the stack that is not umarray's own."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_ROOT):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    return Line(frame.f_code.co_filename, frame.f_lineno, registry)
