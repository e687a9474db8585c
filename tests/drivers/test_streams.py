"""Streams that callers give."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from umarray.drivers.streams import as_stream


class Protocol:
    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, 48)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (SimpleNamespace(ptr=16, device_id=1), (16, 1)),  # CuPy
        (SimpleNamespace(ptr=0, device_id=-1), (0, None)),  # its default streams
        (SimpleNamespace(cuda_stream=32, device_index=2), (32, 2)),  # torch
        (Protocol(), (48, None)),
        (64, (64, None)),
        (0, (0, None)),
    ],
)
def test_streams_of_others(stream: Any, expected: tuple[int, int | None]) -> None:
    assert as_stream(stream) == expected


@pytest.mark.parametrize("stream", [None, True, "own", 1.5, [], object(), -1])
def test_what_is_no_stream_is_quoted(stream: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        as_stream(stream)
    assert repr(stream) in str(caught.value)
