"""The ctypes calls: which function is called with what, and what a missing symbol does."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from umarray.drivers import native
from umarray.drivers.base import Kind
from umarray.drivers.native import NOT_FOUND, CudaNative, Described, HipNative


class Function:
    """A C function of a stand-in library."""

    def __init__(self, do: Any) -> None:
        self.do, self.calls = do, list[Any]()

    def __call__(self, *args: Any) -> int:
        assert len(args) == len(self.argtypes)  # type: ignore[attr-defined]
        self.calls.append(args)
        return self.do(*args)


class Library:
    def __init__(self, **functions: Any) -> None:
        for name, do in functions.items():
            setattr(self, name, Function(do))


def store(pointer: Any, *values: int) -> None:
    """Write ints where a C function would, through the pointer object that ctypes' byref made."""
    target = pointer._obj
    if isinstance(target, ctypes.Array):
        for index, value in enumerate(values):
            target[index] = value
    else:
        target.value = values[0]


def cuda(monkeypatch: Any, **functions: Any) -> CudaNative:
    library = Library(**functions)
    monkeypatch.setattr(native, "_open", lambda *names: library)
    return CudaNative()


@pytest.mark.parametrize(
    ("kind", "name"),
    [(CudaNative, "cuMemDiscardAndPrefetchBatchAsync"), (HipNative, "hipMemDiscardAndPrefetchBatchAsync")],
)
@pytest.mark.parametrize(("place", "location"), [(-1, (2, 0)), (3, (1, 3))])
def test_a_range_is_renewed_as_a_batch_of_one(
    monkeypatch: Any, kind: Any, name: str, place: int, location: tuple[int, int]
) -> None:
    library = Library(**{name: lambda *_: 7})
    monkeypatch.setattr(native, "_open", lambda *names: library)
    calls = kind()
    assert calls.renews and calls.renew(4096, 8192, place, 5) == 7
    ranges, sizes, count, where, which, places, flags, stream = calls._renew.calls[0]
    assert (ranges._obj.value, sizes._obj.value, count) == (4096, 8192, 1)
    assert (where._obj.type, where._obj.id) == location
    assert (which._obj.value, places, flags, stream) == (0, 1, 0, 5)


def test_without_the_call_nothing_is_renewed(monkeypatch: Any) -> None:
    calls = cuda(monkeypatch)
    assert not calls.renews and calls.renew(4096, 8192, 0, 5) == NOT_FOUND


@pytest.mark.parametrize("names", ["v2", "v1", "none"])
def test_cuda_names_the_host_as_the_library_lets_it(monkeypatch: Any, names: str) -> None:
    functions = {
        "v2": {"cuMemPrefetchAsync_v2": lambda *_: 0, "cuMemAdvise_v2": lambda *_: 0},
        "v1": {"cuMemPrefetchAsync": lambda *_: 0, "cuMemAdvise": lambda *_: 0},
        "none": {},
    }[names]
    calls = cuda(monkeypatch, **functions)
    done = (calls.prefetch_to_host(4096, 8192, 7), calls.advise_host(4096, 8192, 3))
    assert done == ((NOT_FOUND, NOT_FOUND) if names == "none" else (0, 0))
    if names == "v2":
        (address, nbytes, location, flags, stream) = calls._prefetch2.calls[0]  # type: ignore[union-attr]
        assert (address, nbytes, location.type, flags, stream) == (4096, 8192, 2, 0, 7)
        assert calls._advise2.calls[0][3].type == 2  # type: ignore[union-attr]
    if names == "v1":
        assert calls._prefetch1.calls == [(4096, 8192, -1, 7)]  # type: ignore[union-attr]
        assert calls._advise1.calls == [(4096, 8192, 3, -1)]  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [0, 1])
def test_a_range_attribute_is_read_or_is_not(monkeypatch: Any, status: int) -> None:
    def read(data: Any, size: int, attribute: int, address: int, nbytes: int) -> int:
        assert (size, attribute, address, nbytes) == (12, 3, 4096, 8192)
        store(data, 0, -1, -2)
        return status

    calls = cuda(monkeypatch, cuMemRangeGetAttribute=read)
    assert calls.read_range(4096, 8192, 3, 3) == (None if status else (0, -1, -2))
    assert cuda(monkeypatch).read_range(4096, 8192, 3) is None


@pytest.mark.parametrize(
    ("memory_type", "managed", "expected"),
    [
        (None, None, None),
        (2, 1, Described(Kind.MANAGED, 4000, 999, 1, -42)),
        (2, 0, Described(Kind.DEVICE, 4000, 999, 1, -42)),
        (1, 0, Described(Kind.PINNED, 4096, 0, 1, -42)),
    ],
)
def test_cuda_describes_memory_of_others(monkeypatch: Any, memory_type: Any, managed: Any, expected: Any) -> None:
    answers = {2: memory_type, 8: managed, 7: 42, 9: 1}

    def ask(data: Any, attribute: int, address: int) -> int:
        if answers[attribute] is None:
            return 1
        store(data, answers[attribute])
        return 0

    def extent(start: Any, nbytes: Any, address: int) -> int:
        store(start, 4000)
        store(nbytes, 999)
        return 0

    calls = cuda(monkeypatch, cuPointerGetAttribute=ask, cuMemGetAddressRange_v2=extent)
    assert calls.describe(4096) == expected


@pytest.mark.parametrize(("status", "managed", "known"), [(0, 1, True), (0, 0, False), (1, 1, False)])
@pytest.mark.parametrize("memory_type", [0, 1, 2, 3])
def test_hip_believes_the_managed_flag_alone(
    monkeypatch: Any, status: int, managed: int, known: bool, memory_type: int
) -> None:
    def attributes(found: Any, address: int) -> int:
        found._obj.type, found._obj.managed, found._obj.device = memory_type, managed, 1
        return status

    monkeypatch.setattr(native, "_open", lambda *names: Library(hipPointerGetAttributes=attributes))
    assert HipNative().describe(4096) == (Described(Kind.MANAGED, 4096, 0, 1, 0) if known else None)


def test_a_library_that_is_not_there_has_no_symbols() -> None:
    assert native._open("libumarray-has-no-such-library.so") is None
    assert HipNative().describe(4096) is None and HipNative().read_range(4096, 8192, 1) is None


def test_loaded_libraries_are_those_mapped() -> None:
    names = [path.name for path in native.loaded_libraries()]
    assert any(name.startswith("libc") for name in names)
