"""What the device says of itself."""

from __future__ import annotations

import pytest

from .conftest import Run, needs_emulator

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


def test_stale_attribute_numbers_are_texture_limits(emulated: Run) -> None:
    emulated(
        """
        assert rt.deviceGetAttribute(49, 0) == 16384 and rt.deviceGetAttribute(47, 0) == 16384
        assert [rt.deviceGetAttribute(n, 0) for n in (9, 13, 24, 65, 66)] == [1, 0, 1, 1, 0]
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
