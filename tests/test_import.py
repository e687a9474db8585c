"""Importing umarray loads no GPU library, no compiler, starts no device, and changes nothing of others'."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import installed_wheel
from umarray.hipemu.rocm import Rocm

PURE = """
import sys, os
before = dict(os.environ)
import umarray
{more}
loaded = {{name.partition(".")[0] for name in sys.modules}}
for name in ("cupy", "cupyx", "cupy_backends", "numba", "torch", "cuda", "dask", "sklearn", "matplotlib"):
    assert name not in loaded, name
assert "umarray.hipemu" not in sys.modules
from umarray import drivers
assert drivers.current_driver() is None
assert dict(os.environ) == before
from pathlib import Path
maps = Path("/proc/self/maps").read_text()
assert not any(name in maps for name in ("libcuda.so", "libcudart", "libamdhip64")), "a vendor library is loaded"
"""

NO_CUPY = """
import sys
sys.modules["cupy"] = None
import umarray
from umarray.drivers import get_driver
driver = get_driver()
assert driver.name == "host" and driver.reasons == ("CuPy is not installed",), driver.reasons
import numpy
assert driver.xp is numpy
"""


def run(script: str, folder: Path, **variables: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("UMARRAY_")}
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


@pytest.mark.parametrize("more", ["", "import umarray.cli", "from umarray.places import as_place; as_place(0)"])
def test_importing_is_pure(repository: Path, more: str) -> None:
    run(PURE.format(more=more), repository)


def test_host_mode_loads_no_cupy(repository: Path) -> None:
    script = "import umarray.drivers, sys; umarray.drivers.get_driver(); assert 'cupy' not in sys.modules"
    run(script, repository, UMARRAY_MODE="host")


def test_without_cupy_the_process_runs_on_the_host(repository: Path) -> None:
    run(NO_CUPY, repository)


def _broken_wheel() -> Rocm | None:
    """The ROCm that the installed wheel misses here."""
    wheel = installed_wheel()
    if wheel is not None:
        try:
            ctypes.CDLL(wheel.runtime)
        except OSError:
            return wheel
    return None


BROKEN = _broken_wheel()


@pytest.mark.skipif(BROKEN is None, reason="needs a ROCm wheel without ROCm")
def test_the_rocm_wheel_without_rocm_is_a_broken_installation(repository: Path) -> None:
    assert BROKEN is not None
    run(
        "from umarray.drivers import get_driver\nfrom umarray.errors import BrokenInstallation\n"
        "try: get_driver()\n"
        "except BrokenInstallation as error:\n"
        "    text = str(error)\n"
        f"    assert {BROKEN.wheel!r} in text and '.so' in text and 'UMARRAY_MODE=host' in text, text\n"
        "else: raise SystemExit('no error')",
        repository,
    )
