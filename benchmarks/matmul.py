"""Matrix products whose factors the host writes each time: explicit copies, managed memory, umarray.

``c = a @ b`` in float32, of 512 to 4096 rows. The ways are described in benchmarks/rounds.py; the time is from the
host's last write to the product, and `write` what the writing took.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import Report, parser
from benchmarks.rounds import Work, measure
from umarray.drivers.base import Driver

SIZES = (512, 1024, 2048, 4096)
QUICK = (64, 128)


def work(driver: Driver, size: int) -> Work:
    rng = np.random.default_rng(size)
    factors = [rng.standard_normal((size, size), np.float32) for _ in range(2)]

    def product(inputs: Sequence[Any], out: Any) -> None:
        driver.xp.matmul(*inputs, out=out)

    return Work(driver, factors, (size, size), product)


def main() -> None:
    report = Report("matmul", parser(__doc__).parse_args())
    sizes = QUICK if report.quick else SIZES
    measure(report, [(f"{size} x {size}", partial(work, size=size)) for size in sizes], tolerance=1e-5)


if __name__ == "__main__":
    main()
