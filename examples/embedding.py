"""An embedding table: big, read at random rows, never written while it is looked up.

On demand each row would be a fault of its own. Prefetched whole and marked as read mostly, a look-up faults on nothing.
"""

import numpy as np

import umarray as um

WORDS, WIDTH, QUERIES = 50_000, 64, 20

if __name__ == "__main__":
    random = np.random.default_rng(0)
    vectors = random.normal(size=(WORDS, WIDTH)).astype(np.float32)
    queries = [random.integers(0, WORDS, 4_096) for _ in range(QUERIES)]

    with um.pool("128MiB") as pool:
        with pool.persistent():
            # Pages of its own: advice about the table can reach no neighbour.
            table = um.empty((WORDS, WIDTH), np.float32, page_aligned=True)
        with um.host_view(table, "w") as rows:  # filled in place, without a copy of the whole on the way
            rows[...] = vectors

        means = []
        with um.advise(table, read_mostly=True), um.prefetch(table):
            for number, query in enumerate(queries):
                with pool.epoch(f"query {number}"):
                    looked_up = table[um.xp.asarray(query)]
                    means.append(um.asnumpy(looked_up.mean(axis=0)))
                    del looked_up  # a name still bound at the end of an epoch is an escape
            print(um.residency(table))

    expected = [vectors[query].mean(axis=0) for query in queries]
    assert np.allclose(means, expected, atol=1e-5)
