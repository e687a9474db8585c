"""The error that ends an iteration: the first one of any of its threads."""

from __future__ import annotations

import threading
from typing import final

from umarray.errors import PipelineError


@final
class FirstError:
    """Keeps the first error that it is told.

    Notes
    -----
    Safe from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.error: BaseException | None = None

    def keep(self, stage: str, index: int, error: BaseException) -> None:
        """Keep the error, with a note of its stage and its batch (below 0: of none), if it is the first one."""
        with self._lock:
            if self.error is not None:
                return
            if isinstance(error, StopIteration):  # would end the loop as if all were well
                error, cause = PipelineError(f"{stage} raised StopIteration"), error
                error.__cause__ = cause
            if hasattr(error, "add_note"):
                where = f" of batch {index}" if index >= 0 else ""
                error.add_note(f"raised in the stage {stage!r}{where} of an umarray.Pipeline")
            self.error = error

    def take(self) -> BaseException | None:
        """The error, which is not kept any more."""
        error, self.error = self.error, None
        return error
