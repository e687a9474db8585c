"""dlpack: managed memory told as device memory, kept alive, in both capsule versions; everything else as it is."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import umarray as um
from umarray.residency.export import _get_pointer, _is_valid

CPU, CUDA, MANAGED, ROCM = 1, 2, 13, 10
TENSOR_AT = {b"dltensor": 0, b"dltensor_versioned": 8 + 8 + 8 + 8}  # dlpack.h: version, context, deleter, flags


def device_in(capsule: Any) -> ctypes.Array[ctypes.c_int32]:
    """The two numbers of the device in a capsule, which may be written."""
    for name, offset in TENSOR_AT.items():
        if _is_valid(capsule, name):
            return (ctypes.c_int32 * 2).from_address(_get_pointer(capsule, name) + offset + 8)
    raise AssertionError(f"{capsule} is no DLPack capsule")


class FakeCupy:
    """Exports NumPy memory under the device type given, as CuPy does; old: takes no keyword but stream."""

    def __init__(self, kind: int, index: int = 0, *, old: bool = False) -> None:
        self.array, self.kind, self.index, self.old = np.arange(5.0), kind, index, old
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, self.index

    def __dlpack__(self, *, stream: Any = None, **wishes: Any) -> Any:
        if self.old and wishes:
            raise TypeError(f"unexpected keywords {list(wishes)}")
        self.asked.append({"stream": stream, **wishes})
        keep = {name: wishes[name] for name in ("max_version",) if name in wishes}
        capsule = self.array.__dlpack__(**keep)
        assert list(device_in(capsule)) == [CPU, 0]  # NumPy's own: we look at the right place
        device_in(capsule)[0], device_in(capsule)[1] = self.kind, self.index
        return capsule


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0)])
@pytest.mark.parametrize(("kind", "told"), [(MANAGED, CUDA), (CUDA, CUDA), (ROCM, ROCM), (CPU, CPU)])
def test_managed_memory_is_told_as_device_memory(kind: int, told: int, max_version: Any) -> None:
    export = um.dlpack(FakeCupy(kind, 3))
    assert export.__dlpack_device__() == (told, 3)
    assert list(device_in(export.__dlpack__(stream=1, max_version=max_version))) == [told, 3]


def test_both_capsule_versions_are_known() -> None:
    x = np.arange(3.0)
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert _is_valid(x.__dlpack__(max_version=(1, 0)), b"dltensor_versioned")
    assert _is_valid(x.__dlpack__(), b"dltensor")


def test_the_consumers_wishes_are_passed_on() -> None:
    x = FakeCupy(MANAGED)
    um.dlpack(x).__dlpack__(stream=7, max_version=(1, 0), dl_device=(CUDA, 0), copy=False)
    assert x.asked == [{"stream": 7, "max_version": (1, 0), "copy": False}]  # our device is what it asks for


def test_a_library_that_knows_no_wishes() -> None:
    x = FakeCupy(MANAGED, old=True)
    assert list(device_in(um.dlpack(x).__dlpack__(stream=7, max_version=(1, 0), copy=False))) == [CUDA, 0]
    for wish in ({"copy": True}, {"dl_device": (CPU, 0)}):
        with pytest.raises(BufferError, match="as it is"):
            um.dlpack(x).__dlpack__(**wish)


def test_numpy_arrays_are_shared_and_kept_alive() -> None:
    class Owned(np.ndarray):  # type: ignore[type-arg]
        pass

    x: Any = np.arange(6.0).reshape(2, 3).T.view(Owned)
    alive = weakref.ref(x)
    y = np.from_dlpack(um.dlpack(x))
    x[2, 1] = 9
    assert y.strides == x.strides and y[2, 1] == 9
    del x
    gc.collect()
    assert alive() is not None
    del y
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("x", [None, 3, "x", [np.ones(2)], {}])
def test_what_cannot_be_exported_is_quoted(x: Any) -> None:
    with pytest.raises(TypeError) as caught:
        um.dlpack(x)
    assert repr(x) in str(caught.value)
