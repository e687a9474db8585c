"""Stages as they run on the host, for whoever listens: `events.Began` and `events.Ended` around each batch's."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import final

from umarray import events

_NOTHING = nullcontext()


def shown(stage: str, index: int) -> AbstractContextManager[None]:
    """A block in which a stage of a batch runs on the host (or is queued there); nothing, where nobody listens.

    Examples
    --------
    >>> with shown("prep", 0):
    ...     pass
    """
    return _Shown(stage, index) if events.listeners else _NOTHING


@final
class _Shown:
    __slots__ = ("_index", "_serial", "_stage")

    def __init__(self, stage: str, index: int) -> None:
        self._stage, self._index, self._serial = stage, index, 0

    def __enter__(self) -> None:
        self._serial = events.next_serial()
        events.emit(events.Began(self._serial, self._stage, str(self._index), ""))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        events.emit(events.Ended(self._serial, self._stage))
