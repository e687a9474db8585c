"""A HIP device on the CPU: runs the unmodified CuPy-ROCm wheel, page faults included, with no AMD GPU.

Start a program on it with ``python -m umarray.hipemu -- python script.py``, or spawn one with `environment`. Inside
such a program the other functions read what happened. Nothing here imports the rest of umarray.

Notes
-----
How it works. A library named ``libamdhip64.so.5`` or ``.7`` (C++, in ``native/``, built with g++ on first use) answers
the HIP runtime and hiprtc in place of ROCm's. Which ROCm it is, 5.0 or 7.0, follows from the installed wheel or from an
option (rocm.py); one source serves both, and what differs is in tables (native/rocm.h says where). Each stream is a
thread (stream.h). Kernels are compiled with g++ and run on the stream's thread, the threads of a block in turn
(block.cpp). The wheel's precompiled kernels (thrust, cub, the Generator API) are replaced where CuPy calls them
(native/preload). All memory lies in one memory file that is mapped once for the host and once for each device; pages
are open in one view and closed in the others, so that each side's touches are told apart and counted (space.h,
residency.h, host_view.h). What advice does to a fault, and which driver says so, is in advice.h.

Modelled, not felt: the time that migrations cost (cost.h). Numbers are exact; times are not.

Emulated: memory of all kinds, streams, events, callbacks, elementwise and reduction kernels, raw kernels and modules,
fusion, ``cupyx.jit``, BLAS, FFT, dense linear algebra (with scipy-openblas32), random numbers, sorting, cub's
reductions and scans. Not emulated, and refused by name: graphs and stream capture, interprocess memory, textures and
surfaces, cooperative groups, sparse matrices, RCCL. A launch of any other precompiled kernel is a sticky error, since
CuPy does not check all of them.

Not modelled: blocks of one grid that wait for one another (blocks run in turn: such a kernel hangs), the timing and the
true order of a GPU's threads, memory that is not zero when it is fresh, and that plain host memory is out of a device's
reach without XNACK (a kernel that is handed such a pointer reads it). More is accepted than by ROCm 7: its hiprtc no
longer knows ``int64_t`` and its like unless they are included, and its stream functions crash on a handle that is no
stream, which is an error here.
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
