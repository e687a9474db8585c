"""What the demo prints, and whether it holds what it promises."""

from __future__ import annotations

from umarray.demo.training import Results
from umarray.sizes import format_size

WANTED_ACCURACY = 0.95
ALLOWED_DIFFERENCE = 1e-4
ENOUGH_EPOCHS = 10
SHORT_STEP_MS = 5.0


def table(results: Results, steps: int) -> str:
    """The results for people, `steps` being the steps of one epoch."""
    rows = [
        ("mode", results.mode),
        ("driver", results.driver),
        ("transport", results.transport),
        ("training", f"{results.epochs} epochs of {steps} steps, on a part of {results.samples:,} digits"),
        (
            "accuracy",
            f"{results.accuracy:.4f} on the held-out fifth; plain NumPy loop {results.reference_accuracy:.4f}",
        ),
        ("weights", f"at most {results.max_abs_difference:.1e} from the plain NumPy loop's"),
        ("step", f"{results.step_ms:.3f} ms"),
        *((f"  {stage}", f"{spent:.3f} ms") for stage, spent in results.stage_ms.items()),
        ("ideal step", f"{results.ideal_step_ms:.3f} ms, the slowest stage run alone"),
        ("overlap efficiency", f"{results.overlap_efficiency:.0%}, the ideal step over the step"),
        ("driver allocations", f"{results.driver_allocations_after_first_epoch} after the first epoch"),
        ("peak", format_size(results.peak_bytes)),
        ("escapes", str(results.escapes)),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    if results.step_ms < SHORT_STEP_MS:
        lines.append("Steps this short say little about overlap: handing a batch over is a good part of each.")
    return "\n".join(lines)


def broken_promises(results: Results) -> list[str]:
    """A sentence for each thing that is not as it should be. Accuracy counts from `ENOUGH_EPOCHS` on."""
    broken = []
    if not results.max_abs_difference <= ALLOWED_DIFFERENCE:  # so written, NaN is a difference
        broken.append(f"the weights differ by {results.max_abs_difference:g} from the plain NumPy loop's")
    if results.epochs >= ENOUGH_EPOCHS and not results.accuracy >= WANTED_ACCURACY:
        broken.append(f"the accuracy is {results.accuracy:.4f}, below {WANTED_ACCURACY}")
    if results.driver_allocations_after_first_epoch:
        broken.append(f"{results.driver_allocations_after_first_epoch} driver allocations after the first epoch")
    if results.escapes:
        broken.append(f"{results.escapes} arrays escaped from their epoch")
    return broken
