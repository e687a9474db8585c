"""A training loop with scopes: each says what is needed where, and umarray does what this device can do about it.

Linear regression over data that the host writes and the device reads. Without a device the scopes are counted no-ops
and the numbers are the same.
"""

import numpy as np

import umarray as um

ROWS, COLUMNS, STEPS = 20_000, 64, 400


def train(data, targets):
    x, y = um.asarray(data), um.asarray(targets)
    w = um.zeros(COLUMNS, np.float32)
    losses = []
    with um.advise(x, y, read_mostly=True):  # many reads, no write: copies may stay on both sides
        with um.prefetch(x, y, w):  # one call for neighbours, before the first kernel needs them
            for step in range(STEPS):
                residual = x @ w - y
                w -= 0.03 / ROWS * (x.T @ residual)
                if step % 100 == 99:
                    with um.host_view(residual) as seen:  # waits for the device, then safe to read
                        losses.append(float(np.square(seen).mean()))
    with um.host_view(w, "r") as seen:
        return seen.copy(), losses


if __name__ == "__main__":
    random = np.random.default_rng(0)
    truth = random.normal(size=COLUMNS).astype(np.float32)
    data = random.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    targets = data @ truth
    with um.pool("64MiB") as pool:
        with pool.epoch("regression"):
            weights, losses = train(data, targets)
        print(f"losses {losses}; {pool.statistics()}")
    assert np.all(np.diff(losses) < 0)
    assert np.allclose(weights, truth, atol=1e-3), np.abs(weights - truth).max()
