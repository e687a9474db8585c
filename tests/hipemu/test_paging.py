"""Demand paging: exact counts, one page at a time, for every rule in residency.h."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run, needs_emulator

pytestmark = needs_emulator

BOTH = pytest.mark.parametrize("way", ["auto", "mprotect"])


@BOTH
def test_faults_are_counted_page_by_page(emulated: Run, way: str) -> None:
    emulated(
        f"""
        import faulthandler
        faulthandler.enable()  # takes the place of our handler, which must take it back
        assert "{way}" in ("auto", h.fault_way())
        x, y = managed(256 * PAGE), managed(256 * PAGE)
        write(managed(PAGE))
        with h.counters() as c:
            host(x)[:] = 1
        assert (c.host_faults, c.device_faults, c.new_pages, c.migrated_bytes) == (256, 0, 256, 0)
        double = kernel("for (long long i = 0; i < n; i++) y[i] = 2 * x[i];")
        with h.counters() as c:
            double(x, y)
        assert (c.device_faults, c.bytes_to_device, c.new_pages) == (512, 256 * PAGE, 256)
        assert h.used_bytes() >= 512 * PAGE and set(h.where(x.data.ptr, x.nbytes)) == {{0}}
        with h.counters() as c:
            double(x, y)
        assert (c.device_faults, c.host_faults, c.migrated_bytes) == (0, 0, 0)
        with h.counters() as c:
            assert host(y).sum() == 2 * y.size
        assert (c.host_faults, c.bytes_to_host) == (256, 256 * PAGE)
        with h.counters() as c:
            host(y)[3] = 9
        assert c.host_faults == 0
        with h.counters() as c:
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, -1, 0)
        assert (c.prefetched_bytes, c.bytes_to_host, c.host_faults) == (256 * PAGE, 256 * PAGE, 0)
        with h.counters() as c:
            assert host(x).sum() == x.size
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)
            rt.memPrefetchAsync(y.data.ptr, y.nbytes, 0, 0)
            double(x, y)
        assert (c.host_faults, c.device_faults, c.prefetched_bytes) == (0, 0, 512 * PAGE)
        """,
        environ={"HIPEMU_FAULTS": way},
    )


@BOTH
def test_a_handler_that_the_program_sets_comes_behind_ours(emulated: Run, way: str) -> None:
    """Also one that is set after the last operation of the device, before a touch by the host."""
    emulated(
        """
        import faulthandler, os, subprocess, sys
        x = managed(4 * PAGE)
        write(x)
        faulthandler.enable()
        with h.counters() as c:
            assert host(x)[0] == 1
        assert c.host_faults == 1
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            ctypes.string_at(8)  # not our page: the program's handler, and the end of the process
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 11
        """,
        environ={"HIPEMU_FAULTS": way},
    )


SETTERS = {
    "signal": "libc.signal(11, theirs)",
    "sigaction": "signal.signal(11, lambda *_: None)",
}


@pytest.mark.parametrize("setter", SETTERS)
def test_a_handler_is_read_back_as_it_was_set(emulated: Run, setter: str) -> None:
    emulated(
        f"""
        import os, signal
        libc = ctypes.CDLL(None)
        libc.signal.restype, libc.signal.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
        theirs = ctypes.cast(libc.abs, ctypes.c_void_p).value  # returns without a trace, as far as a signal goes
        x = managed(4 * PAGE)
        {SETTERS[setter]}
        assert libc.signal(11, None) not in (None, 0)
        write(x)
        assert host(x)[0] == 1
        """,
        environ={"HIPEMU_FAULTS": "mprotect"},
    )


@pytest.mark.parametrize("sent", [("SIGSEGV", -11), ("SIGFPE", -8)])
def test_a_signal_that_is_sent_ends_the_program(emulated: Run, sent: tuple[str, int]) -> None:
    name, code = sent
    emulated(f"import os, signal; managed(PAGE); os.kill(os.getpid(), signal.{name})", code=code)


def test_a_signal_that_is_ignored_is_ignored(emulated: Run) -> None:
    emulated("import os, signal; signal.signal(11, signal.SIG_IGN); managed(PAGE); os.kill(os.getpid(), 11)")


@pytest.mark.parametrize("page", ["4KiB", "1MiB"])
def test_the_size_of_a_page(emulated: Run, page: str) -> None:
    emulated(
        """
        x = managed(8 << 20)
        write(managed(PAGE))
        with h.counters() as c:
            host(x)[:] = 1
            write(x)
        assert (c.host_faults, c.device_faults) == ((8 << 20) // PAGE,) * 2
        assert PAGE in (4096, 1 << 20)
        """,
        page=page,
    )


@pytest.mark.parametrize("page", ["4KiB", "64KiB", "2MiB"])
def test_a_page_lies_at_a_multiple_of_its_size(emulated: Run, page: str) -> None:
    emulated(
        """
        for device in range(2):
            with cupy.cuda.Device(device):
                assert rt.malloc(5) % PAGE == 0
        p, q = rt.mallocManaged(5), rt.mallocManaged(PAGE)
        assert p % PAGE == q % PAGE == 0 and p != q
        """,
        page=page,
        devices=2,
    )


def test_a_prefetch_moves_the_pages_it_names_and_no_others(emulated: Run) -> None:
    emulated(
        """
        x = managed(8 * PAGE)
        host(x)[:] = 1
        with h.counters() as c:
            rt.memPrefetchAsync(x.data.ptr + PAGE + 10, 2 * PAGE, 0, 0)
        assert h.where(x.data.ptr, x.nbytes) == [-1, 0, 0, 0, -1, -1, -1, -1]
        assert c.prefetched_bytes == 3 * PAGE
        with h.counters() as c:
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)
        assert c.prefetched_bytes == 5 * PAGE
        """
    )


def test_system_calls_work_on_pages_of_a_device(emulated: Run, tmp_path: Path) -> None:
    emulated(
        f"""
        if h.fault_way() == "userfaultfd":
            x = managed(16 * PAGE)
            write(x)
            with h.counters() as c:
                host(x).tofile({str(tmp_path / "f")!r})
            assert c.host_faults == 16
            write(x)
            with open({str(tmp_path / "f")!r}, "rb") as file, h.counters() as c:
                assert file.readinto(memoryview(host(x)).cast("B")) == x.nbytes
            assert c.host_faults == 16 and host(x)[0] == 1
        """
    )


@pytest.mark.parametrize(
    ("part", "first", "again"),
    [(0.5, 512, 0), (0.9, 921, 0), (1.1, 1126, 3 * 1126), (2.0, 2048, 3 * 2048)],
)
def test_a_working_set_beside_the_size_of_the_device(emulated: Run, part: float, first: int, again: int) -> None:
    emulated(
        f"""
        write(managed(PAGE))
        free = rt.memGetInfo()[0]
        x = managed(int((64 << 20) * {part}) // PAGE * PAGE)
        with h.counters() as c:
            write(x)
        assert c.device_faults == {first} and c.evicted_bytes >= max(0, x.nbytes - free - PAGE)
        with h.counters() as c:
            for _ in range(3):
                write(x)
        assert c.device_faults == {again} and c.evicted_bytes == {again} * PAGE and c.bytes_to_device == {again} * PAGE
        assert h.used_bytes() <= 64 << 20
        assert (host(x)[::1024] == 4).all()
        """,
        memory="64MiB",
    )


def test_plain_memory_evicts_managed_pages_and_is_never_evicted(emulated: Run) -> None:
    emulated(
        """
        x = managed(64 << 20)
        rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)
        with h.counters() as c:
            p = rt.malloc(16 << 20)
        assert 16 << 20 <= c.evicted_bytes <= (16 << 20) + 2 * PAGE
        write(x)
        assert h.used_bytes() <= 64 << 20
        rt.free(p)
        before = h.used_bytes()
        rt.free(x.data.ptr)
        assert before - h.used_bytes() > 40 << 20
        """,
        memory="64MiB",
    )


@BOTH
def test_read_mostly_copies_once_and_a_write_drops_the_copies(emulated: Run, way: str) -> None:
    emulated(
        """
        x = managed(16 * PAGE)
        host(x)[:] = 1
        x1 = managed(x.nbytes, 1, pointer=x.data.ptr)
        rt.memAdvise(x.data.ptr, x.nbytes, 1, 0)
        with h.counters() as c:
            for _ in range(3):
                read(x)
                with cupy.cuda.Device(1):
                    read(x1)
                host(x).sum()
        assert [c.by_device[d].faults for d in (0, 1)] == [16, 16] and c.host_faults == 0
        assert (c.duplicated_bytes, c.bytes_to_device) == (32 * PAGE, 32 * PAGE) and c.bytes_to_host == 0
        with h.counters() as c:
            host(x)[:] = 2
        assert (c.host_faults, c.dropped_bytes, c.migrated_bytes) == (16, 32 * PAGE, 0)
        with h.counters() as c:
            read(x)
        assert c.duplicated_bytes == 16 * PAGE
        with h.counters() as c:
            write(x)
        assert c.device_faults == 16 and c.migrated_bytes == 0 and set(h.where(x.data.ptr, x.nbytes)) == {0}
        assert host(x)[0] == 3 and host(x)[1] == 2
        """,
        devices=2,
        environ={"HIPEMU_FAULTS": way},
    )


def test_accessed_by_makes_a_neighbours_read_free(emulated: Run) -> None:
    emulated(
        """
        x = managed(16 * PAGE)
        x1 = managed(x.nbytes, 1, pointer=x.data.ptr)
        write(x)
        with cupy.cuda.Device(1):
            read(managed(PAGE, 1))
        rt.memAdvise(x.data.ptr, x.nbytes, 5, 1)
        with h.counters() as c:
            for _ in range(3):
                with cupy.cuda.Device(1):
                    read(x1)
                write(x)
        assert (c.device_faults, c.migrated_bytes) == (0, 0) and set(h.where(x.data.ptr, x.nbytes)) == {0}
        rt.memPrefetchAsync(x.data.ptr, x.nbytes, -1, 0)
        with h.counters() as c:  # the mapping is kept where the pages go
            with cupy.cuda.Device(1):
                write(x1)
        assert c.device_faults == 0 and set(h.where(x.data.ptr, x.nbytes)) == {-1}
        rt.memAdvise(x.data.ptr, x.nbytes, 6, 1)
        with h.counters() as c:
            with cupy.cuda.Device(1):
                read(x1)
        assert (c.by_device[1].faults, c.bytes_to_device) == (16, 16 * PAGE)
        """,
        devices=2,
    )


def test_preferred_location(emulated: Run) -> None:
    emulated(
        """
        x = managed(16 * PAGE)
        host(x)[:] = 0
        rt.memAdvise(x.data.ptr, x.nbytes, 3, -1)
        with h.counters() as c:
            write(x)
            write(x)
        assert (c.device_faults, c.migrated_bytes, c.mapped_bytes) == (16, 0, 16 * PAGE)
        rt.memAdvise(x.data.ptr, x.nbytes, 3, 0)
        with h.counters() as c:
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)
            rt.deviceSynchronize()
            host(x)[:] += 1
            write(x)
        assert (c.prefetched_bytes, c.host_faults, c.device_faults) == (16 * PAGE, 16, 16)
        y = managed(4 * PAGE)
        rt.memAdvise(y.data.ptr, y.nbytes, 3, 1)
        write(y)  # first touch by device 0, made on device 1
        assert h.where(y.data.ptr, y.nbytes) == [1] * 4 and host(x)[0] == 4
        """,
        devices=2,
    )


def test_arrays_of_different_allocations_share_no_page(emulated: Run) -> None:
    emulated(
        """
        x, y = managed(100), managed(100)
        host(x)[:] = host(y)[:] = 1
        with h.counters() as c:
            rt.memPrefetchAsync(x.data.ptr, 100, 0, 0)
        assert c.prefetched_bytes == PAGE and h.where(y.data.ptr, 100) == [-1]
        """
    )


def test_host_and_device_are_told_apart_while_both_run(emulated: Run) -> None:
    emulated(
        """
        x, y = managed(64 * PAGE), managed(64 * PAGE)
        host(x)[:] = host(y)[:] = 1
        slow = cupy.RawKernel('extern "C" __global__ void k(float* x, long long n) {'
                              'for (int r = 0; r < 50; r++) for (long long i = 0; i < n; i += 4) x[i] += 1; }', "k")
        slow((1,), (1,), (x, 1))
        with h.counters() as c:
            slow((1,), (1,), (x, x.size))
            for _ in range(20):
                host(y)[:] += 1
        assert (c.device_faults, c.host_faults) == (65 - 1 - 1, 0) or (c.device_faults, c.host_faults) == (64, 0)
        assert host(x)[4] == 51 and host(y)[4] == 21
        """
    )


def test_contended_pages_keep_every_write(emulated: Run) -> None:
    emulated(
        """
        x = managed(4 * PAGE, dtype="i4")
        host(x)[:] = 0
        k = cupy.RawKernel('extern "C" __global__ void k(int* x, int n) {'
                           'for (int r = 0; r < 300; r++) for (int i = 0; i < n; i += 64) x[i] += 1; }', "k")
        k((1,), (1,), (x, np.int32(x.size)))
        for _ in range(300):
            host(x)[1::64] += 1
        rt.deviceSynchronize()
        assert (host(x)[::64] == 300).all() and (host(x)[1::64] == 300).all()
        """
    )


def test_copies_touch_pages_as_their_kind_says(emulated: Run) -> None:
    emulated(
        """
        x = managed(4 * PAGE)
        host(x)[:] = 5
        buffer = np.empty(x.size, "f4")
        with h.counters() as c:
            rt.memcpy(buffer.ctypes.data, x.data.ptr, x.nbytes, 4)  # default: where they are
        assert (c.device_faults, c.migrated_bytes) == (0, 0) and (buffer == 5).all()
        with h.counters() as c:
            rt.memcpy(buffer.ctypes.data, x.data.ptr, x.nbytes, 2)  # device to host: as the device
        assert c.device_faults == 4
        y = managed(4 * PAGE)
        with h.counters() as c:
            rt.memset(y.data.ptr, 0, y.nbytes)
        assert c.device_faults == 4 and h.where(y.data.ptr, y.nbytes) == [0] * 4
        """
    )


def test_pointers_stored_in_memory_are_followed(emulated: Run) -> None:
    emulated(
        """
        follow = cupy.RawKernel('extern "C" __global__ void k(float** p) { *p[0] += 1; *p[1] += 1; }', "k")
        plain, m = cupy.zeros(1, "f4"), managed(4 * PAGE)
        write(m)
        rt.memPrefetchAsync(m.data.ptr, m.nbytes, 0, 0)
        table = cupy.array([plain.data.ptr, m.data.ptr], "u8")
        follow((1,), (1,), (table,))
        assert float(plain[0]) == 1 and h.where(m.data.ptr, PAGE) == [0]
        with h.counters() as c:
            assert host(m)[0] == 2
        assert c.host_faults == 1  # the host's view was closed again
        """
    )


def test_an_integrated_card_migrates_nothing(emulated: Run) -> None:
    emulated(
        """
        assert rt.getDeviceProperties(0)["integrated"] == 1
        x = managed(16 * PAGE)
        with h.counters() as c:
            host(x)[:] = 1
            write(x)
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, -1, 0)
        assert host(x)[0] == 2 and (c.device_faults, c.host_faults, c.migrated_bytes) == (0, 0, 0)
        """,
        profile="mi300a",
    )


def test_a_blocking_prefetch_returns_when_the_pages_have_moved(emulated: Run) -> None:
    emulated(
        """
        x = managed(16 * PAGE)
        host(x)[:] = 1
        s = cupy.cuda.Stream(non_blocking=True)
        rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, s.ptr)
        assert set(h.where(x.data.ptr, x.nbytes)) == {0}
        """,
        blocking_prefetch=True,
    )


def test_the_modelled_time_follows_the_bytes(emulated: Run) -> None:
    emulated(
        """
        x = managed(64 * PAGE)
        host(x)[:] = 1
        with h.counters() as prefetched:
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)
        host(x)[:] = 1
        with h.counters() as demanded:
            write(x)
        assert 0 < 4 * prefetched.modelled_seconds < demanded.modelled_seconds < 1
        """
    )
