"""A data loader with explicit copies, as many programs have it. data_loader_after.py is the same with umarray.

Preparation, copy and compute take turns: while one of them works, the other two wait.
"""

import numpy as np

from umarray import asnumpy, xp  # xp: cupy, or numpy where there is no device

BATCH = 256
images = np.random.default_rng(1).integers(0, 256, (5_000, 32, 32), dtype=np.uint8)
weights = np.random.default_rng(2).normal(size=(32 * 32, 16)).astype(np.float32)


def train(epochs=2):
    on_device = xp.asarray(weights)
    total = xp.zeros(16, np.float32)
    host = np.empty((BATCH, 32, 32), np.uint8)
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(images))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            host[: len(rows)] = images[rows, :, ::-1]  # prepare: gather and flip
            batch = xp.asarray(host[: len(rows)])  # copy: from pageable memory, synchronised
            pixels = batch.reshape(len(rows), -1).astype(np.float32) / 255  # compute
            total += xp.tanh(pixels @ on_device).sum(axis=0)
    return asnumpy(total)


if __name__ == "__main__":
    result = train()
    expected = np.tanh(images[:, :, ::-1].reshape(len(images), -1).astype(np.float32) / 255 @ weights).sum(axis=0)
    assert np.allclose(result, 2 * expected, rtol=1e-3, atol=0.1), (result, 2 * expected)
