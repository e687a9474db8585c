"""What every benchmark shares: who measured, interleaved repetitions, medians with their spread, results.

Run a benchmark as a module from the project's folder, ``python -m benchmarks.NAME [--quick] [--json] [--save]``.
A benchmark is about this long::

    arguments = parser(__doc__).parse_args()
    report = Report("sums", arguments)
    data = np.arange(1_000_000.0)
    variants = {"sum": data.sum, "dot": lambda: data @ np.ones_like(data)}
    report.compare("1e6 float64", variants, unit="us", tolerance=1e-9)
    report.finish()
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_PACKAGES = ("umarray", "numpy", "numba", "cuda-bindings", "torch")


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated runs: the median, and the quartiles on both sides of it."""

    median: float
    low: float
    high: float
    repetitions: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """The timing of at least one run."""
        if not seconds:
            raise ValueError("no run was timed")
        low, high = np.quantile(seconds, [0.25, 0.75])
        return cls(statistics.median(seconds), float(low), float(high), len(seconds))

    def per(self, count: float) -> Timing:
        """The timing of one of `count` things that each run did."""
        return Timing(self.median / count, self.low / count, self.high / count, self.repetitions)


@dataclass(frozen=True)
class Measured:
    """What a variant returns that did its own timing: the seconds that count, and its result."""

    seconds: float
    result: Any = None


class Disagreement(AssertionError):
    """Variants that should compute the same did not."""


def interleaved(
    variants: Mapping[str, Callable[[], Any]],
    repetitions: int,
    *,
    warmup: int = 1,
    finish: Callable[[], object] | None = None,
    tolerance: float | None = 0.0,
) -> dict[str, Timing]:
    """Time each variant, taking turns, so that a drift of the machine falls on all of them alike.

    Parameters
    ----------
    variants : mapping of str to callable
        Called without arguments; a `Measured` carries its own time, anything else is a result.
    repetitions, warmup : int
        Timed rounds, and rounds before them. Each round starts at another variant.
    finish : callable, optional
        Called inside the timed span, to wait for a device.
    tolerance : float or None
        How far results may differ from the first variant's, relative to its largest value. None: not compared, for
        variants that compute nothing.

    Raises
    ------
    Disagreement
        Results differ; the text names the variant and by how much.
    """
    if repetitions < 1:
        raise ValueError(f"repetitions must be 1 or more, not {repetitions!r}")
    names = list(variants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(-warmup, repetitions):
        results = {}
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            start = perf_counter()
            result = variants[name]()
            if finish is not None:
                finish()
            spent = perf_counter() - start
            if isinstance(result, Measured):
                spent, result = result.seconds, result.result
            if turn >= 0:
                seconds[name].append(spent)
            results[name] = result
        if tolerance is not None:
            check_same({name: results[name] for name in names}, tolerance)
    return {name: Timing.of(runs) for name, runs in seconds.items()}


def check_same(results: Mapping[str, Any], tolerance: float = 0.0) -> None:
    """Raise `Disagreement` unless every result equals the first, to `tolerance` relative to its largest value."""
    (first, expected), *others = ((name, _numpy(result)) for name, result in results.items())
    for name, result in others:
        if result.shape != expected.shape:
            raise Disagreement(f"{name} gave shape {result.shape}, {first} {expected.shape}")
        if result.size == 0 or np.array_equal(result, expected):
            continue
        difference = float(np.max(np.abs(result - expected)))
        largest = float(np.max(np.abs(expected)))
        if not difference <= tolerance * largest:  # so written, NaN is a disagreement
            raise Disagreement(f"{name} differs from {first} by {difference:g}, where the largest value is {largest:g}")


def _numpy(result: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """A result as one flat array; None, from variants without one, as an empty one."""
    if result is None:
        return np.empty(0)
    if isinstance(result, (tuple, list)):
        return np.concatenate([np.ravel(_numpy(one)) for one in result])
    return np.asarray(result.get() if type(result).__module__.startswith("cupy") else result, dtype=np.float64)


def header() -> dict[str, Any]:
    """The machine, the device, the driver and the versions behind a result."""
    from umarray.drivers import get_driver

    driver = get_driver()
    devices = [asdict(driver.traits(index)) for index in range(driver.device_count())]
    versions = {"python": platform.python_version()}
    for name in (*_PACKAGES, *_cupy_packages()):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    runtime = sys.modules["cupy"].cuda.runtime if devices else None
    if runtime is not None:
        versions["runtime"] = str(runtime.runtimeGetVersion())
        versions["device driver"] = str(runtime.driverGetVersion())
    return {
        "machine": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
        "device": devices[0]["name"] if devices else "none",
        "devices": len(devices),
        "driver": driver.name,
        "mode": driver.mode.value,
        "versions": versions,
    }


def _cupy_packages() -> list[str]:
    """The distribution that CuPy came from, without importing it."""
    return sorted(set(metadata.packages_distributions().get("cupy", ())))


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def parser(description: str | None) -> argparse.ArgumentParser:
    """A command line with the options that every benchmark has; add your own."""
    result = argparse.ArgumentParser(description=(description or "").strip().split("\n")[0])
    result.add_argument("--quick", action="store_true", help="small and few: shows that it runs, measures nothing")
    result.add_argument("--json", action="store_true", help="print the result as JSON")
    result.add_argument("--save", action="store_true", help="write the result into benchmarks/results")
    result.add_argument("--repetitions", type=int, default=None, help="timed rounds (7, with --quick 2)")
    return result


class Report:
    """Rows of one benchmark, printed as a table or as JSON, and saved with the machine named.

    Parameters
    ----------
    name : str
        The benchmark's; a result is saved as ``name-device.json``.
    arguments : argparse.Namespace
        What `parser` parsed.
    """

    def __init__(self, name: str, arguments: argparse.Namespace, folder: Path = RESULTS) -> None:
        if arguments.save and arguments.quick:
            raise SystemExit("--save and --quick: a quick run measures nothing that is worth keeping")
        self.name = name
        self.quick: bool = arguments.quick
        self.repetitions: int = arguments.repetitions or (2 if self.quick else 7)
        self.rows: list[dict[str, Any]] = []
        self._arguments = arguments
        self._folder = folder

    def add(self, case: str, variant: str, timing: Timing | None = None, *, unit: str = "ms", **more: Any) -> None:
        """One row; `more` are columns of its own. Times are stored in `unit`."""
        row: dict[str, Any] = {"case": case, "variant": variant}
        if timing is not None:
            scale = UNITS[unit]
            row |= {f"median_{unit}": timing.median / scale, f"low_{unit}": timing.low / scale}
            row |= {f"high_{unit}": timing.high / scale, "repetitions": timing.repetitions}
        self.rows.append(row | more)

    def compare(
        self, case: str, variants: Mapping[str, Callable[[], Any]], *, unit: str = "ms", per: float = 1, **how: Any
    ) -> dict[str, Timing]:
        """`interleaved` with this run's repetitions; a row for each variant, with its ratio to the first."""
        timings = {name: timing.per(per) for name, timing in interleaved(variants, self.repetitions, **how).items()}
        first = next(iter(timings.values())).median
        for name, timing in timings.items():
            self.add(case, name, timing, unit=unit, ratio=timing.median / first)
        return timings

    def finish(self) -> Path | None:
        """Print, and save where that was asked for; returns the file."""
        result = {"benchmark": self.name, "quick": self.quick, "header": header(), "rows": self.rows}
        text = json.dumps(result, indent=2)
        print(text if self._arguments.json else self._text(result["header"]))
        if not self._arguments.save:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        where = result["header"]["device"] if result["header"]["devices"] else "host"
        path = self._folder / f"{self.name}-{re.sub(r'[^a-z0-9]+', '-', where.lower()).strip('-')}.json"
        path.write_text(text + "\n")
        return path

    def _text(self, top: Mapping[str, Any]) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in top["versions"].items())
        lines = [
            f"{self.name}{' (quick: no measurement)' if self.quick else ''}",
            f"  {top['machine']}, {top['cores']} cores; device: {top['device']}; {top['driver']}, mode {top['mode']}",
            f"  {versions}",
        ]
        columns = list(dict.fromkeys(column for row in self.rows for column in row))
        cells = [columns] + [[_cell(row.get(column)) for column in columns] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
