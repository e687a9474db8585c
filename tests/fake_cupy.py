"""As much of CuPy as the driver calls, over ordinary memory, with every runtime call recorded and settable errors."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

MI210 = {
    "name": b"AMD Instinct MI210",
    "gcnArchName": b"gfx90a:sramecc+:xnack+",
    "totalGlobalMem": 64 << 30,
    "managedMemory": 1,
    "concurrentManagedAccess": 1,
    "pageableMemoryAccess": 1,
    "integrated": 0,
}
H200 = {
    "name": b"NVIDIA H200",
    "major": 9,
    "minor": 0,
    "totalGlobalMem": 140 << 30,
    "managedMemory": 1,
    "concurrentManagedAccess": 1,
    "pageableMemoryAccess": 0,
    "integrated": 0,
}


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}: as the runtime words it")
        self.status = status


class FakeRuntime:
    """Streams and events do nothing; copies and memory are real. `errors` maps a call to the status it fails with."""

    CUDARuntimeError = CUDARuntimeError

    def __init__(self, *devices: dict[str, Any]) -> None:
        self.devices = devices or (H200,)
        self.is_hip = "gcnArchName" in self.devices[0]
        self.errors: dict[str, int] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.device = 0
        self.misaligned = 0  # bytes by which its memory misses a page's start
        self.driver_version = 13000
        self._memory: dict[int, Any] = {}

    def _call(self, name: str, *args: Any) -> None:
        self.calls.append((name, *args))
        if name in self.errors:
            raise CUDARuntimeError(self.errors[name])

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]

    def getDeviceCount(self) -> int:
        self._call("getDeviceCount")
        return len(self.devices)

    def getDeviceProperties(self, index: int) -> dict[str, Any]:
        return dict(self.devices[index])

    def driverGetVersion(self) -> int:
        self._call("driverGetVersion")
        return self.driver_version

    def runtimeGetVersion(self) -> int:
        return 50221153 if self.is_hip else 13000

    def getDevice(self) -> int:
        return self.device

    def setDevice(self, device: int) -> None:
        self._call("setDevice", device)
        self.device = device

    def memGetInfo(self) -> tuple[int, int]:
        return 1 << 30, 2 << 30

    def _allocate(self, name: str, nbytes: int, *flags: int) -> int:
        self._call(name, nbytes, *flags)
        memory = ctypes.create_string_buffer(nbytes + 8192)
        address = -(-ctypes.addressof(memory) // 4096) * 4096 + self.misaligned
        self._memory[address] = memory
        return address

    def malloc(self, nbytes: int) -> int:
        return self._allocate("malloc", nbytes)

    def mallocManaged(self, nbytes: int, flags: int) -> int:
        return self._allocate("mallocManaged", nbytes, flags)

    def hostAlloc(self, nbytes: int, flags: int) -> int:
        return self._allocate("hostAlloc", nbytes, flags)

    def free(self, address: int) -> None:
        self._call("free", address)
        del self._memory[address]

    def freeHost(self, address: int) -> None:
        self._call("freeHost", address)
        del self._memory[address]

    def memPrefetchAsync(self, *args: int) -> None:
        self._call("memPrefetchAsync", *args)

    def memAdvise(self, *args: int) -> None:
        self._call("memAdvise", *args)

    def memcpyAsync(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        self._call("memcpyAsync", target, source, nbytes, kind, stream)
        ctypes.memmove(target, source, nbytes)

    def eventCreateWithFlags(self, flags: int) -> int:
        self._call("eventCreateWithFlags", flags)
        return 77

    def eventQuery(self, event: int) -> int:
        self.calls.append(("eventQuery", event))
        return self.errors.get("eventQuery", 0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("event", "stream", "device", "memset")):
            return lambda *args: self._call(name, *args)
        raise AttributeError(name)


class BaseStream:
    entered: ClassVar[list[Any]] = []

    def __init__(self, ptr: int, device_id: int) -> None:
        self.ptr, self.device_id = ptr, device_id

    def __enter__(self) -> Any:
        self.entered.append((self.ptr, self.device_id))
        return self

    def __exit__(self, *_: object) -> None:
        self.entered.pop()


class ExternalStream(BaseStream):
    def __init__(self, *args: Any) -> None:
        raise DeprecationWarning("CuPy 14 warns here")


def fake_cupy(*devices: dict[str, Any]) -> Any:
    """A module that stands for CuPy, seeing these devices (one H200 by default)."""
    return SimpleNamespace(
        __version__="14.2.0",
        ndarray=np.ndarray,
        cuda=SimpleNamespace(
            runtime=FakeRuntime(*devices), ExternalStream=ExternalStream, Device=lambda index: nullcontext()
        ),
    )
