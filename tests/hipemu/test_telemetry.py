"""Counters: totals, differences, what is shown; and that the emulated machine fills every one of them."""

from __future__ import annotations

import dataclasses

import pytest

from umarray.hipemu import Counters, PlaceCounters

from .conftest import Run, needs_emulator

ASKED_FOR = {
    "device_faults",
    "host_faults",
    "bytes_to_device",
    "bytes_to_host",
    "bytes_between_devices",
    "prefetched_bytes",
    "evicted_bytes",
    "duplicated_bytes",
    "mapped_bytes",
    "modelled_seconds",
}


def some() -> Counters:
    first = PlaceCounters(faults=3, bytes_to_device=10, prefetched_bytes=4, modelled_seconds=1.5)
    second = PlaceCounters(faults=4, bytes_between_devices=20, mapped_bytes=7, evicted_bytes=5, bytes_to_host=5)
    host = PlaceCounters(faults=2, prefetched_bytes=1, duplicated_bytes=6, modelled_seconds=0.5)
    return Counters({0: first, 1: second}, host)


def test_totals_are_sums() -> None:
    c = some()
    assert {name: getattr(c, name) for name in ASKED_FOR} == {
        "device_faults": 7,
        "host_faults": 2,
        "bytes_to_device": 10,
        "bytes_to_host": 5,
        "bytes_between_devices": 20,
        "prefetched_bytes": 5,
        "evicted_bytes": 5,
        "duplicated_bytes": 6,
        "mapped_bytes": 7,
        "modelled_seconds": 2.0,
    }
    assert c.migrated_bytes == 35


def test_a_difference_is_taken_field_by_field() -> None:
    c = some()
    c._minus(some())
    assert c.host == PlaceCounters() and c.by_device == {0: PlaceCounters(), 1: PlaceCounters()}


def test_what_is_shown_leaves_zeros_out() -> None:
    assert str(some()).splitlines()[2] == (
        "device 1: faults 4, bytes_to_host 5, bytes_between_devices 20, evicted_bytes 5, mapped_bytes 7"
    )
    assert str(Counters()) == "host: nothing"


@needs_emulator
def test_every_counter_is_counted_where_it_belongs(emulated: Run) -> None:
    names = sorted({field.name for field in dataclasses.fields(PlaceCounters)})
    emulated(
        f"""
        x, y = managed(16 * PAGE), managed(16 * PAGE)
        x1 = managed(x.nbytes, 1, pointer=x.data.ptr)
        with h.counters() as all_of_it:
            host(x)[:] = host(y)[:] = 1
            write(x)                                          # to device 0, by faults
            with cupy.cuda.Device(1):
                write(x1)                                     # on to device 1
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, -1, 0)  # home
            rt.deviceSynchronize()                            # advice is not ordered with streams
            rt.memAdvise(x.data.ptr, x.nbytes, 1, 0)
            read(x)                                           # a copy on device 0
            host(x)[0] = 2                                    # given up
            rt.memAdvise(y.data.ptr, y.nbytes, 5, 1)          # mapped on device 1
            rt.memPrefetchAsync(y.data.ptr, y.nbytes, 0, 0)
            rt.deviceSynchronize()
            rt.malloc(rt.memGetInfo()[0] + 24 * PAGE)         # makes room on device 0
        rows = [all_of_it.host, *all_of_it.by_device.values()]
        for name in {names}:
            assert any(getattr(row, name) for row in rows), name
        zero, one = all_of_it.by_device[0], all_of_it.by_device[1]
        assert (one.bytes_between_devices, zero.bytes_between_devices) == (16 * PAGE, 0)
        assert (zero.duplicated_bytes, one.mapped_bytes) == (16 * PAGE, 16 * PAGE)
        assert (one.bytes_to_host, all_of_it.host.prefetched_bytes) == (16 * PAGE, 16 * PAGE)
        assert zero.evicted_bytes > 0 and one.evicted_bytes == 0
        """,
        devices=2,
        memory="64MiB",
    )


@pytest.mark.parametrize("name", sorted(ASKED_FOR - {"device_faults", "host_faults"}))
def test_every_total_has_a_row_by_device(name: str) -> None:
    assert name in {field.name for field in dataclasses.fields(PlaceCounters)}
