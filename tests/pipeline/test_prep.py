"""Each kernel beside its NumPy form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from umarray.pipeline import prep


def random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random(shape) * 250).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "complex128", "M8[s]"])
@pytest.mark.parametrize("shape", [(7,), (7, 5), (7, 3, 2), (7, 0)])
def test_gather_is_fancy_indexing(dtype, shape):
    source = random(shape, "int64").astype(dtype)
    rows = np.array([6, 0, -1, 3, 3])
    out = np.zeros((5, *shape[1:]), dtype)
    prep.gather(source, rows, out)
    np.testing.assert_array_equal(out, source[rows])


def test_gather_reads_a_memory_map(tmp_path: Path):
    np.save(tmp_path / "rows.npy", random((50, 8), "float32"))
    source = np.load(tmp_path / "rows.npy", mmap_mode="r")
    out = np.zeros((3, 8), "float32")
    prep.gather(source, [49, 0, 7], out)
    np.testing.assert_array_equal(out, source[[49, 0, 7]])


def test_gather_of_no_rows_writes_nothing():
    prep.gather(np.zeros((4, 2)), [], np.zeros((0, 2)))


@pytest.mark.parametrize("rows", [[0, 4], [-5], [2**62]])
def test_gather_of_a_row_that_is_not_there_writes_nothing(rows):
    out = np.full((len(rows), 2), 9.0)
    with pytest.raises(IndexError, match="rows must be -4 to 3"):
        prep.gather(np.zeros((4, 2)), rows, out)
    assert (out == 9).all()


@pytest.mark.parametrize(
    ("source", "rows", "out", "error", "words"),
    [
        (np.zeros((4, 2)), [0], np.zeros((1, 2), "float32"), TypeError, "float32"),
        (np.zeros((4, 2)), [0], np.zeros((2, 2)), ValueError, r"\(2, 2\)"),
        (np.zeros((4, 2)), [0.5], np.zeros((1, 2)), TypeError, "float64"),
        (np.zeros((4, 2)), [[0]], np.zeros((1, 2)), TypeError, "one-dimensional"),
        (np.zeros((2, 4)).T, [0], np.zeros((1, 2)), ValueError, "source must be contiguous"),
        (np.zeros((4, 2)), [0, 1], np.zeros((2, 2)).T, ValueError, "out must be contiguous"),
    ],
)
def test_gather_says_what_does_not_fit(source, rows, out, error, words):
    with pytest.raises(error, match=words):
        prep.gather(source, rows, out)


@pytest.mark.parametrize("target", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 5)])
def test_cast_is_astype(target, shape):
    source = random(shape, "uint8") if shape else np.array(7, "uint8")
    out = np.zeros(shape, target)
    prep.cast(source, out)
    np.testing.assert_array_equal(out, source.astype(target))


def test_cast_says_what_does_not_fit():
    with pytest.raises(ValueError, match=r"out has shape \(2,\)"):
        prep.cast(np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match="contiguous"):
        prep.cast(np.zeros((4, 2)).T, np.zeros((2, 4)))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("target", ["float32", "float64"])
def test_normalise_is_the_expression(dtype, target):
    source = random((6, 4), dtype)
    mean, std = source.mean(axis=0), source.std(axis=0)
    out = np.zeros((6, 4), target)
    prep.normalise(source, mean, 1 / std, out)
    expected = (source.astype(target) - mean.astype(target)) * (1 / std).astype(target)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("source", "mean", "out", "error"),
    [
        (np.zeros(3), np.zeros(3), np.zeros(3), ValueError),
        (np.zeros((2, 3)), np.zeros(2), np.zeros((2, 3)), ValueError),
        (np.zeros((2, 3)), np.zeros(3), np.zeros((3, 2)), ValueError),
        (np.zeros((2, 3)), np.zeros(3), np.zeros((2, 3), int), TypeError),
    ],
)
def test_normalise_says_what_does_not_fit(source, mean, out, error):
    with pytest.raises(error):
        prep.normalise(source, mean, mean, out)


def reference_shift_scale(image, shift, scale):
    height, width = image.shape
    f = np.float32
    cy, cx = f(height - 1) / f(2), f(width - 1) / f(2)
    fy = (np.arange(height, dtype=f) - cy - f(shift[0])) / f(scale) + cy
    fx = (np.arange(width, dtype=f) - cx - f(shift[1])) / f(scale) + cx
    y0, x0 = np.floor(fy).astype(int), np.floor(fx).astype(int)
    ty, tx = fy - y0.astype(f), fx - x0.astype(f)
    total = np.zeros((height, width), f)
    for dy, wy in ((0, f(1) - ty), (1, ty)):
        for dx, wx in ((0, f(1) - tx), (1, tx)):
            inside = ((y0 + dy >= 0) & (y0 + dy < height))[:, None] & ((x0 + dx >= 0) & (x0 + dx < width))[None]
            picked = image[np.clip(y0 + dy, 0, height - 1)][:, np.clip(x0 + dx, 0, width - 1)]
            total += np.where(inside, np.outer(wy, wx) * picked.astype(f), f(0))
    return total


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_shift_scale_is_the_numpy_form(dtype):
    rng = np.random.default_rng(1)
    images = random((5, 8, 6), dtype)
    rows = np.array([4, 0, 2, -1])
    shifts, scales = rng.uniform(-3, 3, (4, 2)), rng.uniform(0.5, 2, 4)
    out = np.full((4, 8, 6), 99, dtype)
    prep.shift_scale(images, rows, shifts, scales, out)
    expected = np.stack([reference_shift_scale(images[r], s, z) for r, s, z in zip(rows, shifts, scales, strict=True)])
    if dtype == "uint8":  # a value within rounding error of a half may go either way
        assert np.abs(out - expected).max() <= 0.501
    else:
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-3)


def test_shift_scale_moves_by_whole_pixels_down_and_right():
    images = random((1, 4, 5), "uint8")
    out = np.zeros((1, 4, 5), "uint8")
    prep.shift_scale(images, [0], [[1, 2]], [1.0], out)
    expected = np.zeros((4, 5), "uint8")
    expected[1:, 2:] = images[0, :-1, :-2]
    np.testing.assert_array_equal(out[0], expected)


@pytest.mark.parametrize(
    ("rows", "shifts", "scales", "error"),
    [
        ([9], [[0, 0]], [1], IndexError),
        ([0], [[0]], [1], ValueError),
        ([0], [[0, 0]], [0], ValueError),
        ([0], [[0, 0]], [-1], ValueError),
        ([0], [[0, np.nan]], [1], ValueError),
        ([0], [[0, 0]], [np.inf], ValueError),
        ([0, 1], [[0, 0]], [1], ValueError),
    ],
)
def test_shift_scale_says_what_does_not_fit(rows, shifts, scales, error):
    out = np.full((1, 3, 3), 9.0)
    with pytest.raises(error):
        prep.shift_scale(np.zeros((2, 3, 3)), rows, shifts, scales, out)
    assert (out == 9).all()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_gather_for_any_shape(data):
    source = data.draw(npst.arrays(np.int32, npst.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6)))
    rows = data.draw(st.lists(st.integers(-len(source), len(source) - 1), max_size=8))
    out = np.zeros((len(rows), *source.shape[1:]), np.int32)
    prep.gather(source, rows, out)
    np.testing.assert_array_equal(out, source[np.array(rows, int)])


def test_importing_the_pipeline_loads_no_numba():
    code = "import sys, umarray.pipeline.prep; assert 'numba' not in sys.modules, 'numba was loaded'"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
