"""A stencil in time (heat in a plate), its results read on the host every 100 steps, without a copy of one's own."""

import numpy as np

import umarray as um

SIZE, STEPS, EVERY = 256, 1_000, 100


def step(old, new):
    """One explicit step; the borders are insulated."""
    new[...] = old
    new[1:] += 0.2 * (old[:-1] - old[1:])
    new[:-1] += 0.2 * (old[1:] - old[:-1])
    new[:, 1:] += 0.2 * (old[:, :-1] - old[:, 1:])
    new[:, :-1] += 0.2 * (old[:, 1:] - old[:, :-1])


if __name__ == "__main__":
    with um.pool("64MiB") as pool:
        with pool.persistent():
            old, new = um.zeros((SIZE, SIZE)), um.empty((SIZE, SIZE))
        with um.host_view(old, "w") as plate:  # "w": every element is written
            plate[...] = 0
            plate[SIZE // 2, SIZE // 2] = 1_000

        heat, hottest = [], []
        with um.prefetch(old, new):
            for number in range(0, STEPS, EVERY):
                with pool.epoch(f"steps {number} to {number + EVERY}"):
                    for _ in range(EVERY):
                        step(old, new)
                        old, new = new, old
                with um.host_view(old) as plate:  # waits for the device; read-only
                    heat.append(plate.sum())
                    hottest.append(plate.max())

    assert np.allclose(heat, 1_000)  # none is lost
    assert np.all(np.diff(hottest) < 0)  # and it spreads
