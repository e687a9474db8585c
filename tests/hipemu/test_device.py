"""What the device says of itself."""

from __future__ import annotations

import pytest

from .conftest import ROCM, Run, needs_emulator, needs_rocm7

pytestmark = needs_emulator


def test_properties_are_those_of_an_mi210(emulated: Run) -> None:
    emulated(
        """
        p = rt.getDeviceProperties(0)
        assert b"MI210" in p["name"] and p["gcnArchName"] == b"gfx90a:sramecc+:xnack+"
        assert (p["totalGlobalMem"], p["warpSize"], p["multiProcessorCount"]) == (256 << 20, 64, 104)
        assert (p["managedMemory"], p["concurrentManagedAccess"], p["pageableMemoryAccess"]) == (1, 1, 1)
        assert rt.memGetInfo()[1] == 256 << 20
        """
    )


def test_without_xnack_pageable_access_is_off_and_nothing_migrates(emulated: Run) -> None:
    emulated(
        """
        p = rt.getDeviceProperties(0)
        assert p["gcnArchName"].endswith(b"xnack-")
        assert (p["managedMemory"], p["concurrentManagedAccess"], p["pageableMemoryAccess"]) == (1, 1, 0)
        x = managed(16 * PAGE)
        with h.counters() as c:
            host(x)[:] = 3
            write(x)
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)
            rt.memAdvise(x.data.ptr, x.nbytes, 1, 0)
        assert host(x)[0] == 4
        assert (c.device_faults, c.host_faults, c.migrated_bytes, h.used_bytes()) == (0, 0, 0, h.used_bytes())
        value = ctypes.c_int()
        assert h.control.library().hipMemRangeGetAttribute(
            ctypes.byref(value), 4, 1, ctypes.c_void_p(x.data.ptr), ctypes.c_size_t(x.nbytes)) == 1
        """,
        xnack=False,
    )


def test_stale_attribute_numbers_are_texture_limits_and_errors(emulated: Run) -> None:
    emulated(
        """
        for number in (47, 48):  # "Cuda only" in ROCm's header
            try:
                rt.deviceGetAttribute(number, 0)
            except rt.CUDARuntimeError as error:
                assert error.status == 1 and f"no device attribute of number {number}" in str(error), str(error)
            else:
                raise AssertionError
        assert [rt.deviceGetAttribute(n, 0) for n in (49, 50, 51)] == [16384, 16384, 8192]
        assert [rt.deviceGetAttribute(n, 0) for n in (9, 13, 24, 65, 66)] == [1, 0, 1, 1, 0]
        """
    )


# What CuPy printed on an AMD card under ROCm 5 (cupy/cupy, issue 7676): wrong, as its numbers are those of ROCm 4.
ON_A_CARD = {
    "ClockRate": 1,
    "ConcurrentManagedAccess": 16384,
    "CooperativeLaunch": 1024,
    "CooperativeMultiDeviceLaunch": 1024,
    "GlobalMemoryBusWidth": 0,
    "IsMultiGpuBoard": 1,
    "KernelExecTimeout": 16384,
    "L2CacheSize": 0,
    "MaxBlockDimZ": 1,
    "MaxGridDimY": 1700000,
    "MaxGridDimZ": 0,
    "MaxRegistersPerBlock": 1,
    "MaxSharedMemoryPerMultiprocessor": 9,
    "MaxTexture1DWidth": 1024,
    "MaxTexture2DHeight": 2147483647,
    "MaxTexture2DWidth": 2147483647,
    "MaxTexture3DWidth": 2147483647,
    "MaxThreadsPerBlock": 0,
    "MaxThreadsPerMultiProcessor": 0,
    "MemoryPoolsSupported": 0,
    "PageableMemoryAccess": 16384,
    "PageableMemoryAccessUsesHostPageTables": 8192,
    "TotalConstantMemory": 1,
    "WarpSize": 1,
}


@pytest.mark.skipif(ROCM != 5, reason="ROCm 5's answers to CuPy 13")
def test_cupy_reads_the_same_nonsense_as_on_a_card(emulated: Run) -> None:
    emulated(
        f"""
        got = cupy.cuda.Device(0).attributes
        assert got == {ON_A_CARD}, (set(got) ^ set({ON_A_CARD}), got)
        try:
            cupy.random.default_rng()  # asks the number of multiprocessors by number 14
        except rt.CUDARuntimeError as error:
            assert "no device attribute of number 14; CuPy 13 means another" in str(error), str(error)
        else:
            raise AssertionError
        try:
            rt.deviceGetAttribute(47, 99)
        except rt.CUDARuntimeError as error:  # nothing is left of the words for the last one
            assert str(error) == "hipErrorInvalidDevice: invalid device ordinal"
        try:
            rt.memAdvise(1, 1, 1, 0)
        except rt.CUDARuntimeError as error:
            assert str(error) == "hipErrorInvalidValue: invalid argument"
        """
    )


@needs_rocm7
def test_rocm_7_answers_more(emulated: Run) -> None:
    emulated(
        """
        p = rt.getDeviceProperties(0)
        assert p["maxGridSize"] == (2147483647, 65536, 65536) and p["isLargeBar"] == 1
        assert [rt.deviceGetAttribute(n, 0) for n in (2, 70, 84, 10018)] == [8, 8 << 20, 256 << 20, 1]
        for gone in (10003, 80):
            try:
                rt.deviceGetAttribute(gone, 0)
            except rt.CUDARuntimeError as error:
                assert error.status == 1
            else:
                raise AssertionError(gone)
        """
    )


@pytest.mark.parametrize("devices", [1, 8])
def test_every_device_has_its_own_memory(emulated: Run, devices: int) -> None:
    emulated(
        f"""
        assert rt.getDeviceCount() == {devices}
        for d in range({devices}):
            with cupy.cuda.Device(d):
                before = rt.memGetInfo()[0]
                p = rt.malloc(1 << 20)
                assert before - rt.memGetInfo()[0] == 1 << 20 == h.used_bytes(d) - (256 << 20) + before
                rt.free(p)
                assert rt.memGetInfo()[0] == before
        try:
            cupy.cuda.Device({devices}).use()
        except rt.CUDARuntimeError as error:
            assert error.status == 101
        else:
            raise AssertionError
        """,
        devices=devices,
    )
