"""Limits that CuPy's users set, on pools over the emulated device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cupy
import pytest

import umarray as um

ROOT = Path(__file__).resolve().parent.parent.parent
MIB = 1 << 20
ARENA = 16 * MIB


def test_the_error_of_a_limit_says_what_was_asked_what_is_used_by_what_and_the_remedy() -> None:
    with um.pool(ARENA) as pool:
        pool.set_limit(size=2 * MIB)
        x = cupy.empty(MIB, "u1")
        with pytest.raises(um.OutOfMemory, match=r"1\.0 MiB in arrays.*set_limit") as caught:
            cupy.empty(3 * MIB // 2, "u1")
        error = caught.value
        assert (error.requested, error.used, error.limit) == (3 * MIB // 2, MIB, 2 * MIB)
        assert isinstance(error, cupy.cuda.memory.OutOfMemoryError)
        assert pool.used_bytes() == MIB and pool.total_bytes() <= 2 * MIB
        del x
        y = cupy.empty(2 * MIB, "u1")
        knot: list[Any] = [y]
        knot.append(knot)
        del y, knot
        z = cupy.empty(2 * MIB, "u1")  # garbage goes before the error
        pool.set_limit(size=0)
        del z


@pytest.mark.parametrize(
    "arguments",
    [{"size": -1}, {"fraction": 1.5}, {"fraction": -0.1}, {"fraction": float("nan")}, {"size": 1, "fraction": 0.5}],
)
def test_what_cannot_be_a_limit_changes_none(arguments: Any) -> None:
    with um.pool(ARENA) as pool:
        pool.set_limit(size=5 * MIB)
        with pytest.raises(ValueError):
            pool.set_limit(**arguments)
        assert pool.get_limit() == 5 * MIB


def test_what_is_carved_ahead_stays_below_the_limit_over_all_lanes() -> None:
    with um.pool(ARENA) as pool:
        pool.set_limit(size=4 * MIB)
        x = cupy.empty(7 * MIB // 2, "u1")
        with pool.persistent():
            y = cupy.empty(512, "u1")
        assert pool.total_bytes() <= 4 * MIB
        del x, y


def test_a_fraction_is_one_of_the_devices_memory() -> None:
    with um.pool(ARENA) as pool:
        pool.set_limit(fraction=0.25)
        assert pool.get_limit() == cupy.cuda.runtime.memGetInfo()[1] // 4
        pool.set_limit()
        assert pool.get_limit() == 0


PROGRAM = """
import os, cupy, umarray as um
try:
    with um.pool("4MiB", limit={limit!r}) as pool:
        for device in range(cupy.cuda.runtime.getDeviceCount()):  # each one's part of the pool
            with cupy.cuda.Device(device):
                x = cupy.empty(8 << 20, "u1")
                print("served", pool.get_limit())
                with pool.persistent(), pool.plain():
                    y = cupy.empty(8 << 20, "u1")
except (um.OutOfMemory, ValueError) as error:
    print(type(error).__name__, str(error))
assert os.environ["CUPY_GPU_MEMORY_LIMIT"] == {text!r}
"""


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("", None, "served 0"),
        ("0", None, "served 0"),
        ("false", None, "served 0"),
        ("16MiB", None, f"served {16 * MIB}"),
        ("4194304", None, "PoolOutOfMemory"),
        ("4194304", "64MiB", "served 0"),  # the argument goes before the environment
        ("plenty", None, "ValueError CUPY_GPU_MEMORY_LIMIT 'plenty'"),
    ],
)
def test_the_environments_limit(text: str, limit: str | None, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.format(limit=limit, text=text)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "CUPY_GPU_MEMORY_LIMIT": text},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    lines = done.stdout.splitlines()
    assert all(line.startswith(expected) for line in lines), lines
    assert len(lines) == (cupy.cuda.runtime.getDeviceCount() if "served" in expected else 1)
