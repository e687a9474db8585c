"""One attention layer, forward, whose five inputs the host writes each time: explicit copies, managed memory, umarray.

Batch 8, sequence 1024, width 512, one head, float32: tokens and four weight matrices, softmax of the scores. The ways
are described in benchmarks/rounds.py; the time is from the host's last write to the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import Report, parser
from benchmarks.rounds import Work, measure
from umarray.drivers.base import Driver

SHAPES = ((8, 1024, 512),)  # batch, sequence, width
QUICK = ((2, 32, 16),)


def work(driver: Driver, shape: tuple[int, int, int]) -> Work:
    batch, sequence, width = shape
    rng, xp = np.random.default_rng(sequence), driver.xp
    tokens = rng.standard_normal(shape, np.float32)
    weights = [rng.standard_normal((width, width), np.float32) / np.float32(width) for _ in range(4)]

    def layer(inputs: Sequence[Any], out: Any) -> None:
        x, *projections = inputs
        q, k, v = (x @ one for one in projections[:3])
        scores = q @ k.transpose(0, 2, 1)
        scores *= np.float32(width**-0.5)
        scores -= scores.max(axis=-1, keepdims=True)
        xp.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        xp.matmul(scores @ v, projections[3], out=out)

    scratch = 4 * (5 * batch * sequence * width + 2 * batch * sequence * sequence)
    return Work(driver, [tokens, *weights], shape, layer, scratch)


def main() -> None:
    report = Report("attention", parser(__doc__).parse_args())
    shapes = QUICK if report.quick else SHAPES
    cases = [("batch {}, sequence {}, width {}".format(*shape), partial(work, shape=shape)) for shape in shapes]
    measure(report, cases, tolerance=1e-4)


if __name__ == "__main__":
    main()
