"""The binary interface: sizes and offsets of structs, as hip_runtime_api.h of ROCm 5.2 and of ROCm 7 lays them out."""

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
OFFSETS_R0600 = {
    "uuid": 256,
    "totalGlobalMem": 288,
    "warpSize": 308,
    "totalConstMem": 352,
    "multiProcessorCount": 388,
    "integrated": 396,
    "surfaceAlignment": 568,
    "pciBusID": 584,
    "managedMemory": 652,
    "pageableMemoryAccess": 672,
    "concurrentManagedAccess": 676,
    "directManagedMemAccessFromHost": 708,
    "reserved": 780,
    "gcnArchName": 1160,
    "maxSharedMemoryPerMultiProcessor": 1416,
    "arch": 1428,
    "isLargeBar": 1464,
}
REAL = Path("/usr/include/hip/hip_runtime_api.h")


def _checks(name: str, size: int, offsets: dict[str, int]) -> list[str]:
    lines = [f"static_assert(sizeof({name}) == {size});"]
    return lines + [f"static_assert(offsetof({name}, {field}) == {at});" for field, at in offsets.items()]


def _compile(include: str, checks: list[str], folder: Path, rocm: int = 5) -> None:
    lines = [include, "#include <cstddef>", *checks]
    lines += ["static_assert(sizeof(hipPointerAttribute_t) == 32 && sizeof(dim3) == 12);"]
    source = folder / "abi.cpp"
    source.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [build.compiler(), "-std=c++17", "-fsyntax-only", "-D__HIP_PLATFORM_AMD__=1", f"-DHIPEMU_ROCM={rocm}", source],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


ROCM_5 = _checks("hipDeviceProp_t", 792, OFFSETS)
ROCM_7 = _checks("hipDeviceProp_tR0600", 1472, OFFSETS_R0600)
OURS = f'#include "{build.NATIVE / "abi.h"}"'
needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")


@needs_compiler
@pytest.mark.parametrize("rocm", [5, 7])
def test_our_structs_are_laid_out_as_rocm_does(rocm: int, tmp_path: Path) -> None:
    _compile(OURS, ROCM_5 + ROCM_7, tmp_path, rocm)


@needs_compiler
def test_memory_types_were_renumbered(tmp_path: Path) -> None:
    for rocm, device, host, unified in ((5, 1, 0, 3), (7, 2, 1, 11)):
        checks = f"hipMemoryTypeDevice == {device} && hipMemoryTypeHost == {host} && hipMemoryTypeUnified == {unified}"
        _compile(OURS, [f"static_assert({checks});"], tmp_path, rocm)


@needs_compiler
def test_another_rocm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="unknown version of ROCm"):
        _compile(OURS, [], tmp_path, 6)


@pytest.mark.skipif(not REAL.exists(), reason="the headers of a real ROCm are not installed")
def test_the_numbers_are_those_of_the_real_headers(tmp_path: Path) -> None:
    newer = "hipGetDevicePropertiesR0600" in REAL.read_text()
    _compile(f'#include "{REAL}"', ROCM_7 if newer else ROCM_5, tmp_path)
