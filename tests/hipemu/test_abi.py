"""The binary interface: sizes and offsets of ROCm 5's structs, as hip_runtime_api.h 5.2 lays them out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from umarray.hipemu import build

OFFSETS = {
    "warpSize": 276,
    "totalConstMem": 320,
    "arch": 356,
    "concurrentKernels": 360,
    "maxSharedMemoryPerMultiProcessor": 376,
    "gcnArchName": 396,
    "integrated": 652,
    "hdpMemFlushCntl": 696,
    "memPitch": 712,
    "managedMemory": 772,
    "concurrentManagedAccess": 780,
    "pageableMemoryAccess": 784,
}
REAL = Path("/usr/include/hip/hip_runtime_api.h")


def _compile(include: str, folder: Path) -> None:
    lines = [include, "#include <cstddef>", "static_assert(sizeof(hipDeviceProp_t) == 792);"]
    lines += ["static_assert(sizeof(hipPointerAttribute_t) == 32 && sizeof(dim3) == 12);"]
    lines += [f"static_assert(offsetof(hipDeviceProp_t, {name}) == {at});" for name, at in OFFSETS.items()]
    source = folder / "abi.cpp"
    source.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [build.compiler(), "-std=c++17", "-fsyntax-only", "-D__HIP_PLATFORM_AMD__=1", str(source)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")
def test_our_structs_are_laid_out_as_rocm_5_does(tmp_path: Path) -> None:
    _compile(f'#include "{build.NATIVE / "abi.h"}"', tmp_path)


@pytest.mark.skipif(not REAL.exists(), reason="the headers of a real ROCm 5 are not installed")
def test_the_numbers_are_those_of_the_real_headers(tmp_path: Path) -> None:
    _compile(f'#include "{REAL}"', tmp_path)
