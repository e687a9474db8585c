"""What every benchmark shares: who measured, the command line, rows, results.

Run a benchmark as a module from the project's folder, ``python -m benchmarks.NAME [--quick] [--json] [--save]``.
A benchmark is about this long::

    arguments = parser(__doc__).parse_args()
    report = Report("sums", arguments)
    data = np.arange(1_000_000.0)
    variants = {"sum": data.sum, "dot": lambda: data @ np.ones_like(data)}
    report.compare("1e6 float64", variants, unit="us", tolerance=1e-9)
    report.finish()

A variant that prepares something before its time begins, or wants its faults counted on the emulated device, times
itself with a `Stopwatch` and returns what `Stopwatch.measured` gives.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import guard
from benchmarks.timing import Disagreement, Measured, Stopwatch, Timing, check_same, interleaved
from umarray import hipemu

RESULTS = Path(__file__).parent / "results"
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
__all__ = [
    "Disagreement",
    "Measured",
    "Report",
    "Stopwatch",
    "Timing",
    "check_same",
    "guarded",
    "header",
    "interleaved",
    "parser",
    "size_of",
]

_PACKAGES = ("umarray", "numpy", "numba", "cuda-bindings", "torch")


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
        "emulated": hipemu.active(),
        "page_bytes": hipemu.page_bytes() if hipemu.active() else driver.page_size,
        "versions": versions,
    }


@contextmanager
def guarded(driver: Any) -> Iterator[None]:
    """Let every managed allocation of umarray's driver in this block pass the guard before a shared card."""
    remove = guard.install(driver)
    try:
        yield
    finally:
        remove()


def size_of(nbytes: int) -> str:
    """Bytes as they stand in the name of a case: whole numbers of the largest unit that divides them.

    Examples
    --------
    >>> size_of(256 << 20), size_of(3 << 9)
    ('256 MiB', '1536 B')
    """
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes and nbytes % factor == 0:
            return f"{nbytes // factor} {unit}"
    return f"{nbytes} B"


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
        self.skipped: list[dict[str, str]] = []
        self._arguments = arguments
        self._folder = folder

    def add(self, case: str, variant: str, timing: Timing | None = None, *, unit: str = "ms", **more: Any) -> None:
        """One row; `more` are columns of its own. Times are in `unit`; counts take their place."""
        row: dict[str, Any] = {"case": case, "variant": variant}
        scale = UNITS[unit]
        if timing is not None and timing.counts is not None:
            row |= timing.counts
        elif timing is not None:
            row |= {f"median_{unit}": timing.median / scale, f"low_{unit}": timing.low / scale}
            row |= {f"high_{unit}": timing.high / scale, "repetitions": timing.repetitions}
            row |= {f"{name}_{unit}": seconds / scale for name, seconds in timing.more.items()}
        self.rows.append(row | more)

    def compare(
        self, case: str, variants: Mapping[str, Callable[[], Any]], *, unit: str = "ms", per: float = 1, **how: Any
    ) -> dict[str, Timing]:
        """`interleaved` with this run's repetitions; a row for each variant, with its ratio to the first.

        On the emulated device, where a `Stopwatch` counts, one round is timed: counts are exact.
        """
        runs = interleaved(variants, self.repetitions, **how)
        timings = {name: timing.per(per) for name, timing in runs.items()}
        first = _cost(next(iter(timings.values())))
        for name, timing in timings.items():
            self.add(case, name, timing, unit=unit, **({"ratio": _cost(timing) / first} if first else {}))
        return timings

    def skip(self, what: str, why: str) -> None:
        """Say that something is not measured here, and why; it is printed and stored with the result."""
        self.skipped.append({"what": what, "why": why})

    def finish(self) -> Path | None:
        """Print, and save where that was asked for; returns the file."""
        measured = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        result = {"benchmark": self.name, "quick": self.quick, "measured": measured}
        top: dict[str, Any] = header()
        result |= {"header": top, "rows": self.rows, "skipped": self.skipped}
        print(json.dumps(result, indent=2) if self._arguments.json else self._text(top))
        return save(result, self.name, self._folder) if self._arguments.save else None

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
        lines += [f"not here: {one['what']} ({one['why']})" for one in self.skipped]
        return "\n".join(lines)


def save(result: Mapping[str, Any], name: str, folder: Path = RESULTS) -> Path:
    """Write a result as ``name-device.json``; returns the file."""
    top = result["header"]
    device = re.sub(r"[^a-z0-9]+", "-", (top["device"] if top["devices"] else "host").lower()).strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{device}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path


def _cost(timing: Timing) -> float:
    """What variants are compared by: seconds, or modelled milliseconds."""
    return timing.median if timing.counts is None else timing.counts["modelled_ms"]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
