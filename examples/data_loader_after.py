"""data_loader_before.py moved to umarray: the loop's three parts became three functions of a pipeline.

While batch n computes, batch n+1 travels and batch n+2 is prepared, straight into memory that the device can read.
"""

import numpy as np
from data_loader_before import BATCH, images, train, weights

import umarray as um


class Batches:
    """Row numbers of the batches, shuffled anew in each epoch."""

    epoch = 0

    def __iter__(self):
        order = np.random.default_rng(self.epoch).permutation(len(images))
        return (order[start : start + BATCH] for start in range(0, len(order), BATCH))


def prepare(rows, slot):
    slot.length = len(rows)  # the last batch is shorter
    slot["images"][: len(rows)] = images[rows, :, ::-1]


def train_with_umarray(epochs=2):
    batches = Batches()
    like = {"images": um.Spec((BATCH, 32, 32), np.uint8)}
    with um.pool("64MiB") as pool:
        with pool.persistent():
            on_device = um.asarray(weights)
            total = um.zeros(16, np.float32)

        def compute(batch):
            pixels = batch["images"].reshape(batch.length, -1).astype(np.float32) / 255
            total[...] += um.xp.tanh(pixels @ on_device).sum(axis=0)

        with um.Pipeline(batches, prepare, compute, like=like) as pipeline:
            for batches.epoch in range(epochs):
                with pool.epoch(f"epoch {batches.epoch}"):
                    for _ in pipeline:
                        pass
            print(pipeline.report())
        return um.asnumpy(total)


if __name__ == "__main__":
    before, after = train(), train_with_umarray()
    assert np.allclose(after, before, rtol=1e-4, atol=1e-2), (after, before)
