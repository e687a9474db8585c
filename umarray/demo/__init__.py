"""The demo: ``python -m umarray demo`` trains a small network on handwritten digits through a pool and a pipeline."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

__all__ = ["add_arguments", "run"]

_TRANSPORTS = ("auto", "managed", "staged", "host")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the demo's options."""
    parser.add_argument("--epochs", type=_positive, default=10, metavar="N", help="passes over the images (default 10)")
    parser.add_argument("--transport", choices=_TRANSPORTS, default="auto", help="how batches reach the device")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="draw the stages of the last batches as a timeline"
    )


def run(args: argparse.Namespace) -> int:
    """Run the demo; returns the exit code: 0 if all is as promised, 1 if not, 2 for what cannot be run."""
    from umarray import events
    from umarray.demo import data, timeline
    from umarray.demo.table import broken_promises, table
    from umarray.demo.training import train

    records: list[events.StageRan] = []
    try:
        if args.plot is not None:
            timeline.check(args.plot)
        digits = data.load()
        results = train(digits, args.epochs, args.transport, records)
    except data.Refused as error:
        print(f"umarray demo: error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(asdict(results)) if args.json else table(results, len(data.Batches(digits))))
    if args.plot is not None:
        timeline.draw(records, args.plot, f"umarray demo: {results.mode} mode, {results.transport} transport")
    broken = broken_promises(results)
    for sentence in broken:
        print(f"umarray demo: {sentence}", file=sys.stderr)
    return 1 if broken else 0


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number
