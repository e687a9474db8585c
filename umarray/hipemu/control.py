"""What a program on the emulated device may ask of the emulator itself: call counts, memory, errors."""

from __future__ import annotations

import ctypes
import functools
import os

from . import rocm

__all__ = [
    "active",
    "call_counts",
    "calls",
    "clear_error",
    "fault_way",
    "live_allocations",
    "page_bytes",
    "used_bytes",
    "where",
]


def active() -> bool:
    """Return whether this process runs on the emulated device."""
    return os.environ.get("HIPEMU") == "1"


@functools.cache
def library() -> ctypes.CDLL:
    """Return the emulated runtime, as this process has it loaded."""
    if not active():
        raise RuntimeError("not on the emulated device: start this process with `python -m umarray.hipemu -- ...`")
    loaded = ctypes.CDLL(rocm.choose().runtime)
    loaded.hipemu_calls.argtypes = [ctypes.c_char_p]
    loaded.hipemu_calls.restype = ctypes.c_uint64
    loaded.hipemu_calls_table.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    loaded.hipemu_calls_table.restype = ctypes.c_size_t
    loaded.hipemu_live_allocations.restype = ctypes.c_uint64
    loaded.hipemu_used_bytes.argtypes = [ctypes.c_int]
    loaded.hipemu_used_bytes.restype = ctypes.c_uint64
    loaded.hipemu_counters.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    loaded.hipemu_page_bytes.restype = ctypes.c_size_t
    loaded.hipemu_fault_way.restype = ctypes.c_char_p
    loaded.hipemu_where.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
    loaded.hipemu_where.restype = ctypes.c_size_t
    return loaded


def calls(*names: str) -> int:
    """Return how often these API functions were called so far, such as ``calls("hipMalloc", "hipMallocManaged")``."""
    return sum(int(library().hipemu_calls(name.encode())) for name in names)


def call_counts() -> dict[str, int]:
    """Return the number of calls of each API function that was called at all."""
    room = 1 << 16
    text = ctypes.create_string_buffer(room)
    library().hipemu_calls_table(text, room)
    pairs = (line.split() for line in text.value.decode().splitlines())
    return {name: int(count) for name, count in pairs}


def live_allocations() -> int:
    """Return how many driver allocations (device, managed, pinned) are alive."""
    return int(library().hipemu_live_allocations())


def used_bytes(device: int = 0) -> int:
    """Return the bytes of a device that are taken, by its allocations and by managed pages that live there."""
    return int(library().hipemu_used_bytes(device))


def page_bytes() -> int:
    """Return the size of a page that migrates."""
    return int(library().hipemu_page_bytes())


def fault_way() -> str:
    """Return how touches of the host are noticed: ``"userfaultfd"`` or ``"mprotect"``.

    Under mprotect a system call that is handed a page which lives on a device (``ndarray.tofile``, ``readinto``)
    fails with EFAULT; under userfaultfd it works and counts as a host fault.
    """
    return str(library().hipemu_fault_way().decode())


def where(pointer: int, nbytes: int) -> list[int]:
    """Return the place of each page of a managed range: a device's number, -1 the host, -2 never touched."""
    count = int(library().hipemu_where(pointer, nbytes, None, 0))
    places = (ctypes.c_int8 * count)()
    library().hipemu_where(pointer, nbytes, places, count)
    return list(places)


def clear_error() -> None:
    """Forget a sticky error, which no real device can do: for tests that provoke one."""
    library().hipemu_clear_error()
