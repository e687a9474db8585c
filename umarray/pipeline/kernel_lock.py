"""Whether code that may run parallel numba kernels has to take turns.

numba's fallback threading layer, workqueue, ends the process when two threads launch parallel kernels at once; its omp
and tbb layers do not (numba's manual, "The Threading Layers").
"""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

_lock = threading.RLock()
_free: AbstractContextManager[Any] = nullcontext()
_safe: bool | None = None


def kernel_turn() -> AbstractContextManager[Any]:
    """A context to run code in that may launch parallel numba kernels.

    A lock of the process where numba uses its workqueue layer; nothing where it uses another, or is not imported.
    """
    global _safe
    if _safe is None:
        numba = sys.modules.get("numba")
        if numba is None or not hasattr(numba, "threading_layer"):  # not imported, or about to be
            return _free
        _safe = _layer(numba) in ("omp", "tbb")
    return _free if _safe else _lock


def _layer(numba: Any) -> str:
    with _lock:
        try:
            numba.get_num_threads()  # makes numba choose its layer
            return str(numba.threading_layer())
        except Exception:  # the layer asked for is not there: a kernel will say so, and better than we could
            return "unknown"
