"""The README's tables of measurements, made from the files in results/ and never typed.

``python -m benchmarks.tables`` writes them between the README's markers; a test checks that they are up to date.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- measured: begin (python -m benchmarks.tables) -->", "<!-- measured: end -->"

Result = dict[str, Any]
OURS = {"umarray", "umarray staged", "umarray managed"}


def rendered(results: Iterable[Result]) -> str:
    """The section's text for these results; a benchmark without a table of its own is left out."""
    parts = []
    for result in sorted(results, key=lambda one: (one["benchmark"], one["header"]["device"])):
        table = _TABLES.get(result["benchmark"])
        if table is not None:
            parts.append(f"{_machine(result['header'])}\n\n{table(result['rows'])}")
    return "\n\n".join(parts)


def read_results(folder: Path = RESULTS) -> list[Result]:
    """Every results file in a folder; a quick run is no measurement and raises."""
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    for result in results:
        if result["quick"]:
            raise ValueError(f"the results of {result['benchmark']} come from --quick, which measures nothing")
    return results


def replaced(readme: str, section: str) -> str:
    """The README's text with its measured section put in place."""
    before, rest = readme.split(BEGIN)
    return f"{before}{BEGIN}\n{section}\n{END}{rest.split(END)[1]}"


def _machine(header: dict[str, Any]) -> str:
    versions = header["versions"]
    cupy = next((f"{name} {versions[name]}" for name in versions if name.startswith("cupy")), "no CuPy")
    return f"{header['device']}, {header['machine']} with {header['cores']} cores, {cupy}:"


def _allocators(rows: list[Result]) -> str:
    """Time beside CuPy's managed pool, and what is reserved over the peak of what was alive."""

    def cell(row: Result) -> str:
        reserved = row.get("reserved")
        return f"{row['ratio']:.2f} x" + ("" if reserved is None else f", {reserved:.2f}")

    timed = [row for row in rows if "ratio" in row]
    caption = (
        "Allocation (`python -m benchmarks.allocators`): time over CuPy's `MemoryPool(malloc_managed)`, then the\n"
        "memory reserved over the peak of what was alive."
    )
    return f"{caption}\n\n{_grid(timed, cell)}"


def _pipeline(rows: list[Result]) -> str:
    """Milliseconds a step."""
    caption = "Pipeline (`python -m benchmarks.pipeline`): milliseconds a step, 3 slots."
    timed = [row for row in rows if "median_ms" in row]
    return f"{caption}\n\n{_grid(timed, lambda row: format(row['median_ms'], '.2f'))}"


def _oversubscribe(rows: list[Result]) -> str:
    """Faults, bytes both ways and modelled time, by how much larger than the memory the working set is."""

    def cell(row: Result) -> str:
        moved = f"{row['to_device_mib']:.0f} + {row['to_host_mib']:.0f} MiB"
        return f"{row['device_faults']:,} faults, {moved}, {row['modelled_ms']:.0f} ms modelled"

    caption = (
        "Working set beyond the device's memory, read four times over: device faults, MiB to the device and back,\n"
        "and modelled time (`python -m umarray emulate --memory 64MiB -- python -m benchmarks.oversubscribe`)."
    )
    return f"{caption}\n\n{_grid(rows, cell)}"


def _grid(rows: list[Result], cell: Callable[[Result], str]) -> str:
    """A table with a line a case and a column a variant; ours come first."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    variants = sorted(dict.fromkeys(row["variant"] for row in rows), key=lambda name: name not in OURS)
    cells = {(row["case"], row["variant"]): cell(row) for row in rows}
    lines = [["", *variants], ["---"] * (len(variants) + 1)]
    lines += [[case, *(cells.get((case, variant), "") for variant in variants)] for case in cases]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


_TABLES: dict[str, Callable[[list[Result]], str]] = {
    "allocators": _allocators,
    "oversubscribe": _oversubscribe,
    "pipeline": _pipeline,
}

if __name__ == "__main__":
    README.write_text(replaced(README.read_text(), rendered(read_results())))
