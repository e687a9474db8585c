"""A HIP device on the CPU: runs the unmodified CuPy-ROCm wheel, page faults included, with no AMD GPU.

Start a program on it with ``python -m umarray.hipemu -- python script.py``, or spawn one with `environment`. Inside
such a program the other functions read what happened. Nothing here imports the rest of umarray.
"""

from __future__ import annotations

from .build import BuildError, library_folder
from .control import active, call_counts, calls, clear_error, live_allocations, used_bytes
from .machine import PROFILES, environment, parse_size

__all__ = [
    "PROFILES",
    "BuildError",
    "active",
    "call_counts",
    "calls",
    "clear_error",
    "environment",
    "library_folder",
    "live_allocations",
    "parse_size",
    "used_bytes",
]
