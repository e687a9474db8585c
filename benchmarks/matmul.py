"""Matrix products whose factors the host writes each time: explicit copies, managed memory, umarray.

``c = a @ b`` in float32, of 512 to 4096 rows. The ways are described in benchmarks/rounds.py; the time is from the
host's last write to the product, and `write` what the writing took.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.common import Report, guarded, parser
from benchmarks.rounds import WARMUP, Work, ways
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Mode

SIZES = (512, 1024, 2048, 4096)
QUICK = (64, 128)


def work(driver: Driver, size: int) -> Work:
    rng = np.random.default_rng(size)
    factors = [rng.standard_normal((size, size), np.float32) for _ in range(2)]

    def product(inputs: Sequence[Any], out: Any) -> None:
        driver.xp.matmul(*inputs, out=out)

    return Work(driver, factors, (size, size), product)


def main() -> None:
    arguments = parser(__doc__).parse_args()
    report, driver = Report("matmul", arguments), get_driver()
    if driver.mode is Mode.HOST:
        report.skip("matmul", "in host mode nothing has to reach a device")
        report.finish()
        return
    with guarded(driver):
        for size in QUICK if report.quick else SIZES:
            with ways(work(driver, size)) as variants:
                report.compare(f"{size} x {size}", variants, tolerance=1e-5, warmup=WARMUP)
                del variants
    report.finish()


if __name__ == "__main__":
    main()
