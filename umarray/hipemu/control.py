"""What a program on the emulated device may ask of the emulator itself: call counts, memory, errors."""

from __future__ import annotations

import ctypes
import functools
import os

__all__ = ["active", "call_counts", "calls", "clear_error", "live_allocations", "used_bytes"]


def active() -> bool:
    """Return whether this process runs on the emulated device."""
    return os.environ.get("HIPEMU") == "1"


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    if not active():
        raise RuntimeError("not on the emulated device: start this process with `python -m umarray.hipemu -- ...`")
    library = ctypes.CDLL("libamdhip64.so.5")
    library.hipemu_calls.argtypes = [ctypes.c_char_p]
    library.hipemu_calls.restype = ctypes.c_uint64
    library.hipemu_calls_table.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.hipemu_calls_table.restype = ctypes.c_size_t
    library.hipemu_live_allocations.restype = ctypes.c_uint64
    library.hipemu_used_bytes.argtypes = [ctypes.c_int]
    library.hipemu_used_bytes.restype = ctypes.c_uint64
    return library


def calls(*names: str) -> int:
    """Return how often these API functions were called so far, such as ``calls("hipMalloc", "hipMallocManaged")``."""
    return sum(int(_library().hipemu_calls(name.encode())) for name in names)


def call_counts() -> dict[str, int]:
    """Return the number of calls of each API function that was called at all."""
    room = 1 << 16
    text = ctypes.create_string_buffer(room)
    _library().hipemu_calls_table(text, room)
    pairs = (line.split() for line in text.value.decode().splitlines())
    return {name: int(count) for name, count in pairs}


def live_allocations() -> int:
    """Return how many driver allocations (device, managed, pinned) are alive."""
    return int(_library().hipemu_live_allocations())


def used_bytes(device: int = 0) -> int:
    """Return the bytes of a device that are taken, by its allocations and by managed pages that live there."""
    return int(_library().hipemu_used_bytes(device))


def clear_error() -> None:
    """Forget a sticky error, which no real device can do: for tests that provoke one."""
    _library().hipemu_clear_error()
