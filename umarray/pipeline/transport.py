"""Transports: how a batch reaches the device, one small class each behind this protocol.

| transport | a slot is | to the device | before preparation writes again |
|---|---|---|---|
| host | ordinary memory | nothing moves | the last reader is done |
| direct | managed memory of a device that shares the host's | nothing moves | the last reader is done |
| bus | host memory that the device reads over the bus | nothing moves | the last reader is done |
| staged | pinned memory, and its batch a second slot of device memory | a copy | the copy out of it is done |
| managed | managed memory | a prefetch | compute is done, then the pages are home, without their bytes if possible |

What a program observes is the same in all. A slot holds one batch, or several small ones side by side, which then
travel as one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from umarray.drivers.base import Event
from umarray.pipeline.ring import Ring
from umarray.pipeline.slots import Job, Slot


class Transport(Protocol):
    """What a pipeline asks of a transport.

    Notes
    -----
    `move` is called by one thread at a time, in the order of the batches; `release` by the thread that iterates;
    `bring_home` by one thread. None of these allocates. Streams are named in each call, never the current one.
    """

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> int: ...
    @property
    def writing(self) -> Ring:
        """The slots that preparation writes."""

    @property
    def reading(self) -> Ring:
        """The slots that batches lie in: another ring, or the same."""

    @property
    def stream(self) -> int | None:
        """What travels to the device travels on it; None where nothing does."""

    @property
    def back_stream(self) -> int | None:
        """What travels back travels on it; None where nothing does."""

    @property
    def keeps_caller(self) -> bool:
        """Whether `move` and `bring_home` may keep their caller for long, and so need threads of their own."""

    @property
    def bytes_moved(self) -> int:
        """Bytes asked to be copied or migrated, both ways."""

    def move(self, job: Job) -> bool:
        """Queue the way to the device of a job whose slot is filled; False where the pipeline stops first."""

    def release(self, slot: Slot, read: Event) -> bool:
        """Every reader of a slot's batches was queued before the event; True where `bring_home` must follow."""

    def bring_home(self, slot: Slot) -> None:
        """Queue the way back to the host of a slot."""

    def close(self) -> None:
        """Give streams and slots back. The caller has waited for the device."""


def take_all(*steps: Callable[[], None]) -> None:
    """Take every step, also after one that fails; then raise the first failure."""
    failure: BaseException | None = None
    for step in steps:
        try:
            step()
        except BaseException as error:
            failure = failure or error
    if failure is not None:
        raise failure
