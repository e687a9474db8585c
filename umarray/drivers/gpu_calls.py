"""How a GPU is called: the runtimes' shared numbers, errors made ours, refusal after a fork, events, streams."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from umarray.drivers import fork
from umarray.errors import DriverError

# The same in HIP and CUDA. CuPy's constants are not used: on HIP some of them are those of ROCm 4.
SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_DEVICE, NOT_READY, NOT_SUPPORTED = 0, 1, 2, 101, 600, 801
ATTACH_GLOBAL = 1  # the only attach flag that HIP takes
PORTABLE = 1  # pinned memory for every device
COPY_DEFAULT = 4  # the runtime infers the direction; a wrong one corrupts managed pages on HIP
NON_BLOCKING = 1
BLOCKING_SYNC, DISABLE_TIMING = 1, 2  # without the first a host wait spins a whole core, which preparation needs

S = TypeVar("S", bound="Calls")
P = ParamSpec("P")
R = TypeVar("R")


class Calls:
    """What may call CuPy's runtime: knows it, its error, and in which process it was made."""

    __slots__ = ("born", "error", "runtime")

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime
        self.error: type[Any] = runtime.CUDARuntimeError
        self.born = fork.generation()

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """Make a device the thread's current one for a block."""
        before = self.runtime.getDevice()
        if before == device:
            yield
            return
        self.runtime.setDevice(device)
        try:
            yield
        finally:
            self.runtime.setDevice(before)


def runtime_call(name: str) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Let a method of `Calls` refuse to run in a forked child, and raise our error for that of runtime call `name`."""

    def decorate(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        @functools.wraps(method)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            fork.check(self.born)
            try:
                return method(self, *args, **kwargs)
            except self.error as error:
                raise DriverError(name, error.status, str(error)) from None

        return call

    return decorate


class GpuEvent(Calls):
    """An event of the runtime. Its finaliser, which may run on any thread, destroys the handle and takes no lock.

    It takes after the `Calls` that records it, in whose process and on whose current device it is made.
    """

    __slots__ = ("handle",)

    def __init__(self, maker: Calls, timed: bool) -> None:
        self.handle = 0
        self.runtime, self.error, self.born = maker.runtime, maker.error, maker.born
        self.handle = self.runtime.eventCreateWithFlags(BLOCKING_SYNC if timed else BLOCKING_SYNC | DISABLE_TIMING)

    @runtime_call("eventQuery")
    def done(self) -> bool:
        status = self.runtime.eventQuery(self.handle)
        if status not in (SUCCESS, NOT_READY):
            raise self.error(status)
        return bool(status == SUCCESS)

    @runtime_call("eventSynchronize")
    def wait(self) -> None:
        self.runtime.eventSynchronize(self.handle)

    def __del__(
        self, finalizing: Callable[[], bool] = sys.is_finalizing, generation: Callable[[], int] = fork.generation
    ) -> None:
        if self.handle and not finalizing() and self.born == generation():
            try:  # and no contextlib.suppress: a pipeline makes some for each batch
                self.runtime.eventDestroy(self.handle)
            except Exception:  # a failed device refuses this too, and the event is gone with it
                pass


def stream_class(cupy: Any) -> Any:
    """A class of CuPy streams that somebody else owns, made from a handle and a device.

    `ExternalStream` warns in CuPy 14, and what it offers instead destroys the stream, so the constructor of
    `ExternalStream` is passed over.
    """
    external: Any = cupy.cuda.ExternalStream

    def make(self: Any, handle: int, device: int) -> None:
        super(external, self).__init__(handle, device)

    return type("BorrowedStream", (external,), {"__init__": make})
