"""The README's tables of measurements, made from the files in results/ and never typed.

``python -m benchmarks.tables`` writes them between the README's markers, and the figures beside them (figures.py); a
test checks that both are up to date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- measured: begin (python -m benchmarks.tables) -->", "<!-- measured: end -->"

Result = dict[str, Any]


def rendered(results: Iterable[Result], figures: Iterable[str] = ()) -> str:
    """The section's text for these results; a benchmark without a table of its own is left out."""
    parts = [f"![{Path(name).stem}]({name})" for name in figures]
    by_device: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda one: (_emulated(one), one["header"]["device"], one["benchmark"])):
        if result["benchmark"] in _TABLES and result["rows"]:
            by_device.setdefault(result["header"]["device"], []).append(result)
    for device, measured in by_device.items():
        parts.append(f"### {device}")
        parts += [f"{_TABLES[one['benchmark']](one['rows'])}\n\n{_machine(one['header'])}" for one in measured]
    return "\n\n".join(parts)


def read_results(folder: Path = RESULTS) -> list[Result]:
    """Every result in a folder's files, those of `run.py` too; of several of one benchmark and device the newest.

    Raises
    ------
    ValueError
        A quick run, which is no measurement.
    """
    found: dict[tuple[str, str], Result] = {}
    for path in sorted(folder.glob("*.json")):
        read = json.loads(path.read_text())
        for result in read.get("results", [read]):
            if result["quick"]:
                raise ValueError(f"the results of {result['benchmark']} come from --quick, which measures nothing")
            key = result["benchmark"], result["header"]["device"]
            if key not in found or _when(result) > _when(found[key]):
                found[key] = result
    return list(found.values())


def _emulated(result: Result) -> bool:
    return "(emulated)" in result["header"]["device"]


def _when(result: Result) -> str:
    """When it was measured; early results do not say."""
    return str(result.get("measured", ""))


def replaced(readme: str, section: str) -> str:
    """The README's text with its measured section put in place."""
    before, rest = readme.split(BEGIN)
    return f"{before}{BEGIN}\n{section}\n{END}{rest.split(END)[1]}"


def _machine(header: dict[str, Any]) -> str:
    versions = header["versions"]
    cupy = next((f"{name} {versions[name]}" for name in versions if name.startswith("cupy")), "no CuPy")
    return f"({header['machine']}, {header['cores']} cores; {cupy}.)"


def _allocators(rows: list[Result]) -> str:
    """Time beside CuPy's managed pool, and what is reserved over the peak of what was alive."""

    def cell(row: Result) -> str:
        reserved = row.get("reserved")
        return f"{row['ratio']:.2f} x" + ("" if reserved is None else f", {reserved:.2f}")

    timed = [row for row in rows if "ratio" in row]
    growing = [row for row in timed if _SCALE.search(row["case"])]
    caption = (
        "Allocation (`python -m benchmarks.allocators`): time over CuPy's `MemoryPool(malloc_managed)`, then the\n"
        "memory reserved over the peak of what was alive."
    )
    text = f"{caption}\n\n{_grid([row for row in timed if row not in growing], cell)}"
    if growing:
        text += "\n\nThe same as threads, streams and live blocks grow, in nanoseconds an allocation:\n\n"
        text += _grid(growing, lambda row: f"{row['median_ns']:,.0f} ({row['ratio']:.2f} x)")
    return text


_SCALE = re.compile("thread|next of|alive")


def _rounds(name: str, what: str) -> Callable[[list[Result]], str]:
    """Time from the host's last write to the result, and its ratio to pinned explicit copies."""

    def table(rows: list[Result]) -> str:
        caption = f"{what} (`python -m benchmarks.{name}`): from the host's last write of the inputs to the result."
        return f"{caption}\n\n{_grid(rows, _cost)}"

    return table


def _embedding(rows: list[Result]) -> str:
    caption = (
        "Random rows of a table that lies on the host (`python -m benchmarks.embedding`): the first look-up, with the\n"
        "move of the table where there is one; `resident` is a look-up after it. In brackets: over on demand."
    )

    def cell(row: Result) -> str:
        times = f" ({1 / row['ratio']:.3g} x faster)" if row.get("ratio") not in (None, 0, 1) else ""
        return (f"{row['median_ms']:.3g} ms" if "median_ms" in row else _moved(row)) + times

    return f"{caption}\n\n{_grid(rows, cell)}"


def _epochs(rows: list[Result]) -> str:
    caption = (
        "Batches allocated anew in each step (`python -m benchmarks.epochs`): a step, and what the allocator holds\n"
        "over the peak of what is alive."
    )

    def cell(row: Result) -> str:
        held = f", holds {row['held']:.1f}" if "held" in row else ""
        return (f"{row['median_ms']:.3f} ms" if "median_ms" in row else _moved(row)) + held

    return f"{caption}\n\n{_grid(rows, cell)}"


def _scopes(rows: list[Result]) -> str:
    caption = (
        "Entering and leaving a scope (`python -m benchmarks.scopes`): microseconds an array, those in the driver's\n"
        "calls in brackets, and how many calls there are."
    )

    def cell(row: Result) -> str:
        return f"{row['median_us']:.1f} ({row['driver_us']:.1f}), {row['calls']:,} calls"

    shown = [row for row in rows if not row["case"].startswith(("10 ", "1,000 s", "1,000 a", "1,000 tiny"))]
    return f"{caption}\n\n{_grid(shown, cell)}"


def _pipeline(rows: list[Result]) -> str:
    """Milliseconds a step."""
    caption = "Pipeline (`python -m benchmarks.pipeline`): milliseconds a step."
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


def _cost(row: Result) -> str:
    """Milliseconds, or on the emulated device faults and modelled ones; and the ratio to the first variant."""
    ratio = f" ({row['ratio']:.2f} x)" if "ratio" in row else ""
    return (f"{row['median_ms']:.3g} ms" if "median_ms" in row else _moved(row)) + ratio


def _moved(row: Result) -> str:
    return f"{row['device_faults'] + row['host_faults']:,.0f} faults, {row['modelled_ms']:.2f} ms modelled"


def _grid(rows: list[Result], cell: Callable[[Result], str]) -> str:
    """A table with a line a case and a column a variant; ours come first."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    variants = sorted(dict.fromkeys(row["variant"] for row in rows), key=lambda name: not name.startswith("umarray"))
    cells = {(row["case"], row["variant"]): cell(row) for row in rows}
    lines = [["", *variants], ["---"] * (len(variants) + 1)]
    lines += [[case, *(cells.get((case, variant), "") for variant in variants)] for case in cases]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


_TABLES: dict[str, Callable[[list[Result]], str]] = {
    "allocators": _allocators,
    "attention": _rounds("attention", "One attention layer, forward"),
    "embedding": _embedding,
    "epochs": _epochs,
    "matmul": _rounds("matmul", "Matrix product"),
    "oversubscribe": _oversubscribe,
    "pipeline": _pipeline,
    "scopes": _scopes,
}

if __name__ == "__main__":
    from benchmarks import figures  # which needs matplotlib

    read = read_results()
    README.write_text(replaced(README.read_text(), rendered(read, figures.draw_all(read))))
