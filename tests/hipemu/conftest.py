"""Runs a program on the emulated device, in a process of its own, with the real CuPy-ROCm wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.needs import in_ci, installed_wheel, missing_for_emulation
from umarray import hipemu

ROOT = Path(__file__).resolve().parent.parent.parent

HEAD = """
import ctypes, threading
import numpy as np, cupy
from cupy.cuda import runtime as rt
from umarray import hipemu as h

def managed(nbytes, device=0, dtype="f4", pointer=None):
    pointer = pointer or rt.mallocManaged(nbytes)
    memory = cupy.cuda.UnownedMemory(pointer, nbytes, None, device)
    return cupy.ndarray((nbytes // np.dtype(dtype).itemsize,), dtype, cupy.cuda.MemoryPointer(memory, 0))

def host(a):
    return np.frombuffer((ctypes.c_char * a.nbytes).from_address(a.data.ptr), a.dtype)

def kernel(body):
    k = cupy.RawKernel('extern "C" __global__ void k(float* x, long long n, float* y) {' + body + "}", "k")
    def run(x, y=None):
        k((1,), (1,), (x, x.size, x if y is None else y))
        cupy.cuda.Device().synchronize()
    return run

PAGE = h.page_bytes() if h.active() else 0
read = kernel("float s = 0; for (long long i = 0; i < n; i += 1024) s += x[i]; if (s == -1.5f) y[0] = s;")
write = kernel("for (long long i = 0; i < n; i += 1024) x[i] += 1;")
"""


_wheel, _missing = installed_wheel(), missing_for_emulation()
ROCM = _wheel.number if _wheel else 0
needs_emulator = pytest.mark.skipif(bool(_missing) and (hipemu.active() or not in_ci()), reason=_missing)
needs_rocm5 = pytest.mark.skipif(ROCM != 5, reason="of the wheel for ROCm 5")
needs_rocm7 = pytest.mark.skipif(ROCM != 7, reason="of the wheel for ROCm 7")


Run = Callable[..., "subprocess.CompletedProcess[str]"]


def start(program: str, *, head: str = HEAD, environ: dict[str, str] | None = None, **machine: Any) -> Any:
    machine = {"memory": "256MiB", "quiet": True, **machine}
    base = dict(os.environ)
    if os.environ.get("HIPEMU_TEST_PRELOAD"):  # sanitize.sh: the runtime of a sanitizer
        base["LD_PRELOAD"] = os.environ["HIPEMU_TEST_PRELOAD"]
    settings = hipemu.environment(**{"base": base, **machine})
    settings.update(environ or {}, PYTHONPATH=str(ROOT))
    return subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(program)],
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def emulated() -> Run:
    """Run a program, and fail with what it said unless it ends with `code`."""

    def run(program: str, *, code: int = 0, **how: Any) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = start(program, **how)
        assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
        return done

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test to start a program builds the emulator; programs end by their own time-out."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("watchdog") is None:
            item.add_marker(pytest.mark.watchdog(600))
