"""Slices of a big array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import umarray as um


@given(st.integers(0, 9), st.integers(1, 5), st.integers(0, 1), st.integers(40, 200))
def test_chunks_are_the_array_in_pieces_of_at_most_so_many_bytes(
    rows: int, columns: int, axis: int, nbytes: int
) -> None:
    a = np.arange(rows * columns, dtype="i4").reshape(rows, columns)
    parts = um.chunks(a, nbytes, axis=axis - 2)
    assert len(parts) == len(list(parts)) == len(parts[:])
    assert all(part.nbytes <= nbytes and np.shares_memory(part, a) for part in parts if part.size)
    if len(parts):
        np.testing.assert_array_equal(np.concatenate(list(parts), axis=axis), a)
        np.testing.assert_array_equal(parts[-1], parts[len(parts) - 1])
    for out in (len(parts), -len(parts) - 1):
        with pytest.raises(IndexError, match=f"chunk {out} of {len(parts)}"):
            parts[out]


def test_a_memory_map_stays_one(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(1000.0))
    parts = um.chunks(np.load(tmp_path / "a.npy", mmap_mode="r"), "1KiB")
    assert isinstance(parts[0], np.memmap) and parts[0].shape == (128,) and len(parts) == 8
    assert repr(parts) == "<8 chunks of an array of shape (1000,), 128 along axis 0>"


@pytest.mark.parametrize(
    ("a", "nbytes", "axis", "error", "words"),
    [
        ([1, 2], 8, 0, TypeError, "chunks takes an array, not list"),
        (np.zeros(4), 0, 0, ValueError, "nbytes must be positive, not 0"),
        (np.zeros(4), "much", 0, ValueError, "nbytes 'much' is not a size"),
        (np.zeros(4), float("nan"), 0, TypeError, "nan"),
        (np.zeros(4), 2**63, 0, ValueError, r"2\*\*63"),
        (np.zeros(4), 8, 1, ValueError, r"axis 1 is not in an array of shape \(4,\)"),
        (np.zeros(()), 8, 0, ValueError, "axis 0 is not in"),
        (np.zeros(4), 8, 0.5, TypeError, "axis must be an int, not 0.5"),
        (np.zeros((4, 4)), 31, 0, ValueError, "one index along axis 0 .* is 32 B, more than nbytes=31"),
    ],
)
def test_what_makes_no_sense_is_refused(a: Any, nbytes: Any, axis: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        um.chunks(a, nbytes, axis)
