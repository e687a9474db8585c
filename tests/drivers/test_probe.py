"""Mode and traits from plain values: every kind of device that was met, and none decided by a name or a platform."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.fake_cupy import H200, MI210
from umarray.drivers import probe
from umarray.drivers.base import Mode
from umarray.errors import BrokenInstallation, NotSupported

NO_XNACK = {**MI210, "gcnArchName": b"gfx90a:sramecc+:xnack-", "pageableMemoryAccess": 0}
RDNA3 = {**NO_XNACK, "name": b"Radeon RX 7900 XTX", "gcnArchName": b"gfx1100"}
STRIX = {**RDNA3, "name": b"Radeon 8060S", "gcnArchName": b"gfx1151", "integrated": 1}
NO_MANAGED = {**STRIX, "gcnArchName": b"gfx1150", "managedMemory": 0, "concurrentManagedAccess": 0}
MI300A = {**MI210, "name": b"AMD Instinct MI300A", "gcnArchName": b"gfx942:sramecc+:xnack+", "integrated": 1}
MI300A_SILENT = {**MI300A, "integrated": 0}
MI300A_OFF = {**MI300A, "pageableMemoryAccess": 0}
MI300X = {**MI210, "name": b"AMD Instinct MI300X", "gcnArchName": b"gfx942:sramecc+:xnack+"}
OLD_HIP = {"name": b"Vega", "gcnArch": 900, "totalGlobalMem": 8 << 30, "integrated": 0}
TEXTURE_LIMITS = {**NO_XNACK, "concurrentManagedAccess": 16384, "managedMemory": 1, "pageableMemoryAccess": 16384}
WSL2 = {**H200, "concurrentManagedAccess": 0}
TEGRA = {**WSL2, "name": b"Orin", "integrated": 1}
SPARK = {**H200, "name": b"NVIDIA GB10", "integrated": 1, "pageableMemoryAccess": 1}
VGPU = {**H200, "managedMemory": 0, "concurrentManagedAccess": 0}

TABLE = {
    # device: (vendor, properties, managed, unified, prefetch, coarse grain)
    "MI210, XNACK on": ("hip", MI210, True, False, True, True),
    "MI210, XNACK off": ("hip", NO_XNACK, False, False, False, False),
    "RDNA3 (1/1/0)": ("hip", RDNA3, False, False, False, False),
    "iGPU, integrated proves nothing": ("hip", STRIX, False, False, False, False),
    "no managed memory at all": ("hip", NO_MANAGED, False, False, False, False),
    "MI300A": ("hip", MI300A, True, True, False, False),
    "MI300A that does not say integrated": ("hip", MI300A_SILENT, True, True, False, False),
    "MI300A, XNACK off": ("hip", MI300A_OFF, False, False, False, False),
    "MI300X, the same architecture": ("hip", MI300X, True, False, True, True),
    "a HIP that tells nothing": ("hip", OLD_HIP, False, False, False, False),
    "texture limits in place of answers": ("hip", TEXTURE_LIMITS, False, False, False, False),
    "H200": ("cuda", H200, True, False, True, False),
    "WSL2": ("cuda", WSL2, False, False, False, False),
    "Tegra": ("cuda", TEGRA, False, False, False, False),
    "one memory on CUDA": ("cuda", SPARK, True, True, False, False),
    "vGPU": ("cuda", VGPU, False, False, False, False),
}


@pytest.mark.parametrize("device", TABLE)
def test_traits(device: str) -> None:
    vendor, properties, managed, unified, prefetch, coarse = TABLE[device]
    facts = probe.read_facts(vendor, 3, properties)
    traits = probe.device_traits(facts, readable_ranges=managed)
    got = (traits.managed, traits.unified, traits.prefetch, traits.coarse_grain)
    assert got == (managed, unified, prefetch, coarse)
    assert traits.prefetch_blocks == (vendor == "hip" and prefetch)
    assert traits.reasons and "Device(3)" in traits.reasons[0] and traits.device.id == 3


@pytest.mark.parametrize("device", TABLE)
@pytest.mark.parametrize("xnack", [None, "0", "1", ""])
def test_the_environment_decides_nothing_and_advice_is_one_line_a_device(device: str, xnack: str | None) -> None:
    vendor, properties, managed, *_ = TABLE[device]
    facts = probe.read_facts(vendor, 0, properties)
    environ = {} if xnack is None else {"HSA_XNACK": xnack}
    lines = probe.advice([facts, replace(facts, index=1)], environ)
    assert len(lines) == (2 if vendor == "hip" else 0)
    for line in lines:
        assert "HSA_XNACK" in line
        can_retry = facts.architecture.startswith("gfx9")
        assert ("set HSA_XNACK=1" in line) == (not managed and can_retry and xnack != "1")


def test_the_reason_of_an_amd_device_names_the_bit_that_decided() -> None:
    assert "pageableMemoryAccess" in probe.device_managed(probe.read_facts("hip", 0, RDNA3))[1]
    assert "concurrentManagedAccess" in probe.device_managed(probe.read_facts("cuda", 0, WSL2))[1]
    assert "managedMemory" in probe.device_managed(probe.read_facts("cuda", 0, VGPU))[1]


def facts_of(*devices: dict[str, Any]) -> list[probe.DeviceFacts]:
    vendor = "hip" if "gcnArchName" in devices[0] else "cuda"
    return [probe.read_facts(vendor, index, properties) for index, properties in enumerate(devices)]


@pytest.mark.parametrize(
    ("asked", "devices", "mode"),
    [
        ("auto", [MI210], Mode.MANAGED),
        ("auto", [H200, H200], Mode.MANAGED),
        ("auto", [MI210, RDNA3], Mode.EXPLICIT),
        ("auto", [RDNA3], Mode.EXPLICIT),
        ("auto", [MI300A_OFF], Mode.EXPLICIT),
        ("managed", [MI300A], Mode.MANAGED),
        ("explicit", [H200], Mode.EXPLICIT),
        ("explicit", [WSL2], Mode.EXPLICIT),
    ],
)
def test_the_weakest_device_decides(asked: str, devices: list[dict[str, Any]], mode: Mode) -> None:
    got, reasons = probe.decide_mode(asked, facts_of(*devices))
    assert got is mode and reasons
    if len(devices) == 2 and mode is Mode.EXPLICIT:
        assert "Device(1)" in reasons[0] and "weakest" in reasons[-1]


def test_forcing_managed_where_it_cannot_be_is_refused_with_the_reason() -> None:
    with pytest.raises(NotSupported, match=r"UMARRAY_MODE=managed.*Device\(1\).*XNACK bit.*UMARRAY_MODE=auto"):
        probe.decide_mode("managed", facts_of(MI210, RDNA3))


@pytest.mark.parametrize(("status", "driver_version"), [(100, 13000), (100, 0), (35, 0)])
def test_no_device_is_a_reason(status: int, driver_version: int) -> None:
    assert "the words" in probe.no_device(status, "the words", driver_version)


@pytest.mark.parametrize(("status", "driver_version"), [(35, 11040), (3, 0), (803, 13000), (999, 13000)])
def test_a_device_that_cannot_be_used_is_a_broken_installation(status: int, driver_version: int) -> None:
    with pytest.raises(BrokenInstallation, match=rf"status {status}, the words.*UMARRAY_MODE=host"):
        probe.no_device(status, "the words", driver_version)


def test_a_broken_cupy_names_what_is_broken() -> None:
    root = ImportError("libamdhip64.so.5: cannot open shared object file")
    try:
        raise ImportError("====\nFailed to import CuPy.\n====") from root
    except ImportError as error:
        text = str(probe.broken(error, ["cupy-rocm-5-0 13.3.0"]))
    assert "cupy-rocm-5-0 13.3.0" in text and "libamdhip64.so.5" in text and "UMARRAY_MODE=host" in text
    assert "\n" not in text


def test_two_wheels_are_told() -> None:
    text = str(probe.broken(ImportError("boom"), ["cupy-cuda12x 13.3.0", "cupy-rocm-5-0 13.3.0"]))
    assert "cupy-cuda12x 13.3.0, cupy-rocm-5-0 13.3.0" in text and "uninstall all" in text


def test_versions_as_people_write_them() -> None:
    assert (probe.cuda_version(13000), probe.cuda_version(12020)) == ("13.0", "12.2")
    assert (probe.hip_version(50221153), probe.hip_version(60140092)) == ("5.2.21153", "6.1.40092")
