"""The README's figures, drawn from the files in results/: how ways and transports compare.

Each SVG carries a stamp of what it was drawn from, by which a test tells one that is out of date without drawing it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "figures"
ROOT = Path(__file__).parent.parent

Result = dict[str, Any]
Bars = dict[str, dict[str, float]]
"""Heights by case, then by variant."""


def bars_of(results: Iterable[Result], benchmarks: Iterable[str], column: str, keep: Callable[[str], bool]) -> Bars:
    """What a figure shows: of benchmarks on a real device, a column's numbers; cases that lack it are left out."""
    wanted, bars = list(benchmarks), Bars()
    for result in sorted(results, key=lambda one: (one["benchmark"] not in wanted[:1], one["header"]["device"])):
        if result["benchmark"] not in wanted or "emulated" in result["header"]["device"]:
            continue
        for row in result["rows"]:
            if column in row and keep(row["variant"]):
                bars.setdefault(row["case"], {})[row["variant"]] = row[column]
    return bars


def ways(results: Iterable[Result]) -> Bars:
    """Time over pinned explicit copies, by the way in which host-written inputs reach the device."""
    return bars_of(results, ("matmul", "attention"), "ratio", lambda variant: variant != "explicit, pageable")


def pipeline(results: Iterable[Result]) -> Bars:
    """A step over the slowest stage alone, by who overlaps preparation, copies and compute."""
    return bars_of(results, ("pipeline",), "over_ideal", lambda variant: variant != "naive")


FIGURES: dict[str, tuple[Callable[[Iterable[Result]], Bars], str]] = {
    "ways": (ways, "time over pinned explicit copies"),
    "pipeline": (pipeline, "step over the slowest stage alone"),
}


def stamp(bars: Bars) -> str:
    """What tells one set of bars from another."""
    return hashlib.sha256(json.dumps(bars, sort_keys=True).encode()).hexdigest()[:16]


def names(results: list[Result]) -> list[str]:
    """The figures that there are numbers for, as the README links them."""
    return [str((FOLDER / f"{name}.svg").relative_to(ROOT)) for name, (bars, _) in FIGURES.items() if bars(results)]


def stamp_in(path: Path) -> str:
    """The stamp that a figure carries."""
    return path.read_text().rsplit("<!-- drawn from ", 1)[1].split(" ", 1)[0]


def draw_all(results: list[Result], folder: Path = FOLDER) -> list[str]:
    """Draw every figure that there are numbers for; returns their names for the README."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, label) in FIGURES.items():
        bars, path = make(results), folder / f"{name}.svg"
        if bars:
            draw(bars, label, path)
        else:
            path.unlink(missing_ok=True)
    return names(results)


def draw(bars: Bars, label: str, path: Path) -> None:
    """Grouped bars, a group a case, on a white ground; the file is the same for the same numbers."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    variants = list(dict.fromkeys(variant for heights in bars.values() for variant in heights))
    variants.sort(key=lambda name: (name.startswith("umarray"), name))
    width = 0.8 / len(variants)
    with plt.rc_context({"svg.hashsalt": "umarray", "svg.fonttype": "none", "font.size": 9}):
        figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
        for number, variant in enumerate(variants):
            known = [(k, heights[variant]) for k, heights in enumerate(bars.values()) if variant in heights]
            places = [k + (number - (len(variants) - 1) / 2) * width for k, _ in known]
            axes.bar(places, [height for _, height in known], width, label=variant, color=f"C{number}")
        axes.set_xticks(range(len(bars)), [case.replace(", ", "\n") for case in bars])
        axes.set_ylabel(label)
        axes.axhline(1, color="0.6", linewidth=0.8, zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.25))
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)
    path.write_text(path.read_text() + f"<!-- drawn from {stamp(bars)} -->\n")
