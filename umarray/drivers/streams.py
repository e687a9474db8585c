"""Streams that callers give: CuPy's, PyTorch's, or handles."""

from __future__ import annotations

from typing import Any


def as_stream(stream: Any) -> tuple[int, int | None]:
    """Handle and device of a CuPy or torch stream, or of an int; the device is None where it does not say.

    Raises
    ------
    TypeError, ValueError
        Anything else, or a negative handle; the text quotes it.
    """
    if not isinstance(stream, (bool, str)) and stream is not None:
        for name in ("ptr", "cuda_stream"):  # CuPy, torch
            handle = getattr(stream, name, None)
            if isinstance(handle, int):
                return handle, _device_of(stream)
        if hasattr(type(stream), "__cuda_stream__"):
            return int(stream.__cuda_stream__()[1]), _device_of(stream)
        if hasattr(type(stream), "__index__"):
            if stream.__index__() < 0:
                raise ValueError(f"a stream's handle cannot be negative: {stream!r}")
            return stream.__index__(), None
    raise TypeError(f"a stream must be a CuPy or torch stream or an int handle, not {stream!r}")


def _device_of(stream: Any) -> int | None:
    for name in ("device_id", "device_index"):
        value = getattr(stream, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:  # CuPy's default streams say -1
            return value
    return None
