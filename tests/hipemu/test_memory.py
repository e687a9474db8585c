"""Allocation, copies, and what is refused."""

from __future__ import annotations

import pytest

from .conftest import Run, needs_emulator, needs_rocm5, needs_rocm7

pytestmark = needs_emulator


def test_out_of_memory_is_code_2_and_changes_nothing(emulated: Run) -> None:
    emulated(
        """
        rt.deviceSynchronize()
        free = rt.memGetInfo()[0]
        held = rt.malloc(200 << 20)
        for size in (100 << 20, 1 << 62):
            try:
                rt.malloc(size)
            except rt.CUDARuntimeError as error:
                assert error.status == 2 and "out of memory" in str(error)
            else:
                raise AssertionError
        assert rt.memGetInfo()[0] == free - (200 << 20)
        rt.free(held)
        assert rt.memGetInfo()[0] == free
        """
    )


def test_calls_are_counted(emulated: Run) -> None:
    emulated(
        """
        before = h.calls("hipMalloc", "hipMallocManaged"), h.live_allocations()
        p, q = rt.malloc(100), rt.mallocManaged(100)
        assert (h.calls("hipMalloc", "hipMallocManaged"), h.live_allocations()) == (before[0] + 2, before[1] + 2)
        frees = h.calls("hipFree")
        rt.free(p)
        rt.free(q)
        assert h.calls("hipFree") == frees + 2 and h.live_allocations() == before[1]
        assert h.call_counts()["hipMallocManaged"] == 1
        """
    )


def test_copies_in_all_directions(emulated: Run) -> None:
    emulated(
        """
        a = np.arange(1000, dtype="f8")
        x = cupy.asarray(a)
        y = cupy.empty_like(x)
        y.data.copy_from_device(x.data, x.nbytes)
        pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(8000), "f8", 1000)
        y.data.copy_to_host_async(pinned.ctypes.data, 8000, cupy.cuda.Stream.null)
        rt.deviceSynchronize()
        assert (pinned == a).all() and (y.get() == a).all()
        rt.memset(x.data.ptr + 8, 0, 8)
        assert x.get()[:3].tolist() == [0.0, 0.0, 2.0]
        with cupy.cuda.Device(1):
            z = cupy.empty_like(y)
            z.data.copy_from_device(y.data, y.nbytes)
            assert (z.get() == a).all()
        """,
        devices=2,
    )


def test_a_copy_past_the_end_is_refused(emulated: Run) -> None:
    emulated(
        """
        p = rt.malloc(100)
        buffer = np.zeros(200, "u1")
        for call in (lambda: rt.memcpy(p, buffer.ctypes.data, 101, 1), lambda: rt.memset(p, 0, 101),
                     lambda: rt.free(p + 8)):
            try:
                call()
            except rt.CUDARuntimeError as error:
                assert error.status == 1
            else:
                raise AssertionError
        """
    )


def test_hints_must_name_a_managed_range(emulated: Run) -> None:
    emulated(
        """
        m, p = rt.mallocManaged(8192), rt.malloc(8192)
        for call, status in [
            (lambda: rt.memPrefetchAsync(m, 0, 0, 0), 1),
            (lambda: rt.memPrefetchAsync(m, 8193, 0, 0), 1),
            (lambda: rt.memPrefetchAsync(p, 100, 0, 0), 1),
            (lambda: rt.memPrefetchAsync(m, 100, 7, 0), 101),
            (lambda: rt.memAdvise(m, 0, 1, 0), 1),
            (lambda: rt.memAdvise(m, 100, 9, 0), 1),
            (lambda: rt.mallocManaged(0), 1),
            (lambda: rt.mallocManaged(10, 2), 1),
        ]:
            try:
                call()
            except rt.CUDARuntimeError as error:
                assert error.status == status, (error.status, status)
            else:
                raise AssertionError
        """
    )


def test_range_attributes_read_back_by_4_kib(emulated: Run) -> None:
    emulated(
        """
        m = rt.mallocManaged(1 << 20)
        def ask(attribute, at=m, size=1 << 20, slots=1):
            values = (ctypes.c_int * slots)(*[77] * slots)
            code = h.control.library().hipMemRangeGetAttribute(
                values, 4 * slots, attribute, ctypes.c_void_p(at), ctypes.c_size_t(size))
            assert code == 0
            return list(values)
        assert [ask(n) for n in (1, 2, 4, 100)] == [[0], [-2], [-2], [0]]
        rt.memAdvise(m, 4096, 1, 0)
        assert ask(1) == [0] and ask(1, m, 4096) == [1] and ask(1, m + 4096, 4096) == [0]
        rt.memAdvise(m, 1 << 20, 3, -1)
        rt.memAdvise(m, 1 << 20, 5, 1)
        rt.memAdvise(m, 4096, 5, 0)
        rt.memAdvise(m, 4096, 100, 0)
        assert ask(2) == [-1] and ask(3, slots=3) == [1, -2, -2] and ask(3, m, 4096, 2) == [0, 1]
        assert ask(100) == [2] and ask(100, m, 4096) == [1]
        rt.memPrefetchAsync(m, 1 << 20, 1, 0)
        assert ask(4) == [1]
        rt.memAdvise(m, 1 << 20, 4, 0)
        rt.memAdvise(m, 1 << 20, 6, 1)
        assert ask(2) == [-2] and ask(3, m, 4096, 2) == [0, -2]
        """,
        devices=2,
    )


@needs_rocm5
def test_pointer_attributes(emulated: Run) -> None:
    emulated(
        """
        d, m, p = rt.malloc(100), rt.mallocManaged(100), rt.hostAlloc(100, 0)
        assert rt.pointerGetAttributes(d + 10).device == 0
        a = np.zeros(3)
        types = [rt.pointerGetAttributes(x).type for x in (d, m, p, a.ctypes.data)]
        assert types[:3] == [rt.memoryTypeDevice, rt.memoryTypeHost, rt.memoryTypeHost] and types[3] == 3
        """
    )


@needs_rocm7
@pytest.mark.parametrize("strict", [False, True])
def test_pointer_attributes_of_rocm_7(emulated: Run, strict: bool) -> None:
    emulated(
        """
        def types(pointer):  # as the runtime says, and as CuPy renumbers it: host as 1, pinned as device
            raw = (ctypes.c_int * 8)()
            assert h.control.library().hipPointerGetAttributes(raw, ctypes.c_void_p(pointer)) == 0
            return raw[0], rt.pointerGetAttributes(pointer).type

        a = np.zeros(3)
        d, m, p = rt.malloc(100), rt.mallocManaged(100), rt.hostAlloc(100, 0)
        assert [types(x) for x in (d, m, p, a.ctypes.data)] == [(2, 2), (3, 3), (1, 2), (0, 1)]
        assert rt.pointerGetAttributes(a.ctypes.data).device == -2
        raw = (ctypes.c_int * 8)()
        assert h.control.library().hipPointerGetAttributes(raw, None) == 0  # an error before 7.0
        rt.free(m)
        assert h.control.library().hipPointerGetAttributes(raw, ctypes.c_void_p(m)) == 0 and list(raw)[:2] == [0, -2]
        """,
        strict=strict,
    )


@needs_rocm5
def test_a_plain_host_pointer_is_an_error_under_strict(emulated: Run) -> None:
    emulated(
        """
        a = np.zeros(3)
        try:
            rt.pointerGetAttributes(a.ctypes.data)
        except rt.CUDARuntimeError as error:
            assert error.status == 1
        else:
            raise AssertionError
        """,
        strict=True,
    )


def test_the_host_cannot_touch_plain_device_memory(emulated: Run) -> None:
    emulated("ctypes.memset(rt.malloc(100), 0, 1)", code=-11)


def test_managed_and_pinned_memory_can_be_touched(emulated: Run) -> None:
    emulated(
        """
        for p in (rt.mallocManaged(100), rt.hostAlloc(100, 0)):
            ctypes.memset(p, 7, 100)
            assert ctypes.string_at(p, 100) == b"\\7" * 100
        """
    )


def test_freed_memory_comes_back_to_the_system_and_fresh_memory_is_not_shared(emulated: Run) -> None:
    emulated(
        """
        def rss():
            return int(open("/proc/self/statm").read().split()[2]) * 4096
        start = rss()
        for _ in range(20):
            x = managed(32 << 20)
            host(x)[:] = 1
            rt.free(x.data.ptr)
        assert rss() - start < 16 << 20
        pointers = [rt.malloc(1) for _ in range(100)]
        assert len({p // PAGE for p in pointers}) == 100
        """
    )
