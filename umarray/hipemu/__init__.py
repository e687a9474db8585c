"""A HIP device on the CPU: runs the unmodified CuPy-ROCm wheel, page faults included, with no AMD GPU.

Start a program on it with ``python -m umarray.hipemu -- python script.py``, or spawn one with `environment`. Inside
such a program the other functions read what happened. Nothing here imports the rest of umarray.
"""

from __future__ import annotations

from .build import BuildError, library_folder
from .control import (
    active,
    call_counts,
    calls,
    clear_error,
    fault_way,
    live_allocations,
    page_bytes,
    used_bytes,
    where,
)
from .machine import PROFILES, environment, parse_size
from .telemetry import Counters, PlaceCounters, counters, read_counters

__all__ = [
    "PROFILES",
    "BuildError",
    "Counters",
    "PlaceCounters",
    "active",
    "call_counts",
    "calls",
    "clear_error",
    "counters",
    "environment",
    "fault_way",
    "library_folder",
    "live_allocations",
    "page_bytes",
    "parse_size",
    "read_counters",
    "used_bytes",
    "where",
]
