"""Named ranges in the vendors' profilers: NVTX for Nsight, roctx for rocprof, by start and stop across threads."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from umarray.errors import NotSupported

_ROCTX = ("librocprofiler-sdk-roctx.so.1", "libroctx64.so.4", "libroctx64.so.1", "libroctx64.so")
"""ROCm 6 and 7 (rocprofv3 listens to the first), ROCm 5."""


@dataclass(frozen=True, slots=True)
class RangeLibrary:
    """A vendor's two calls."""

    name: str
    start: Callable[[str], Any]
    """Begin a range of this name; what comes back ends it."""
    stop: Callable[[Any], None]


def nvtx() -> RangeLibrary:
    """NVTX, by NVIDIA's package `nvtx`.

    Raises
    ------
    NotSupported
        It is not installed.
    """
    try:
        library: Any = importlib.import_module("nvtx")
    except ImportError as error:
        raise NotSupported(f"ranges for Nsight need the package nvtx: {error}") from None
    return RangeLibrary("NVTX", lambda name: library.start_range(name, domain="umarray"), library.end_range)


def roctx(names: Sequence[str] = _ROCTX) -> RangeLibrary:
    """roctx, from ROCm's own library.

    Raises
    ------
    NotSupported
        None of the libraries is there.
    """
    for name in names:
        try:
            library = ctypes.CDLL(name)
            start, stop = library.roctxRangeStartA, library.roctxRangeStop
        except (OSError, AttributeError):
            continue
        start.argtypes, start.restype = [ctypes.c_char_p], ctypes.c_uint64
        stop.argtypes, stop.restype = [ctypes.c_uint64], None
        return RangeLibrary(name, partial(_start, start), stop)
    raise NotSupported(f"ranges for rocprof need ROCm's roctx, and none of these is found: {', '.join(names)}")


def _start(start: Callable[[bytes], int], text: str) -> int:
    return start(text.encode())
