"""Reduce a file that need not fit in memory: chunks of a memory map go through a pipeline, one at a time.

While one chunk is summed, the next travels, and the one after is read from the disk.
"""

import tempfile
from pathlib import Path

import numpy as np

import umarray as um

ROWS, COLUMNS = 100_000, 64


def write(path):
    """A file of 24 MiB; nothing below depends on its size."""
    data = np.lib.format.open_memmap(path, "w+", np.float32, (ROWS, COLUMNS))
    for start in range(0, ROWS, 10_000):
        data[start : start + 10_000] = np.random.default_rng(start).normal(1, 2, (10_000, COLUMNS))
    data.flush()


def column_moments(path):
    """Mean and standard deviation of each column, in one pass over the file."""
    data = np.load(path, mmap_mode="r")
    sums = um.zeros((2, COLUMNS), np.float64)

    def add(batch):
        chunk = batch["rows"].astype(np.float64)
        sums[0] += chunk.sum(axis=0)
        sums[1] += (chunk * chunk).sum(axis=0)

    def read(chunk, slot):
        slot.length = len(chunk)
        slot["rows"][: len(chunk)] = chunk

    chunks = um.chunks(data, "2MiB")
    like = {"rows": um.Spec(chunks[0].shape, data.dtype)}
    with um.Pipeline(chunks, read, add, like=like) as pipeline:
        for _ in pipeline:
            pass
    mean, square = um.asnumpy(sums) / len(data)
    return mean, np.sqrt(square - mean * mean)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        write(path)
        mean, deviation = column_moments(path)
        whole = np.load(path).astype(np.float64)
    assert np.allclose(mean, whole.mean(axis=0), atol=1e-9)
    assert np.allclose(deviation, whole.std(axis=0), atol=1e-9)
