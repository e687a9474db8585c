"""The model: what moving costs."""

from __future__ import annotations

import pytest

from umarray.observe.facts import Costs, Move
from umarray.places import HOST, Device

COSTS = Costs(1e-5, 2e-5, 1e-4, demand=1e9, to_device=1e10, to_host=5e9, between=2e10, demand_back=5e8, batch=1e-6)
GPU = Device(0)


@pytest.mark.parametrize(
    ("origin", "to", "cause", "seconds"),
    [
        (HOST, GPU, "fault", 3e-5 + 1e6 / 1e9),
        (GPU, HOST, "fault", 6e-5 + 1e6 / 5e8),
        (GPU, Device(1), "coherence", 3e-5 + 1e6 / 1e9),
        (HOST, GPU, "prefetch", 1e-6 + 1e6 / 1e10),
        (GPU, HOST, "prefetch", 1e-6 + 1e6 / 5e9),
        (GPU, Device(1), "prefetch", 1e-6 + 1e6 / 2e10),
        (GPU, HOST, "eviction", 1e6 / 5e9),
    ],
)
def test_what_a_move_costs(origin: object, to: object, cause: str, seconds: float) -> None:
    move = Move(0.0, 4096, 1_000_000, origin, to, "moved", cause, faults=3)  # type: ignore[arg-type]
    assert COSTS.of(move) == pytest.approx(seconds)


def test_a_fault_that_moves_nothing_costs_its_latency() -> None:
    assert COSTS.of(Move(0.0, 4096, 4096, GPU, GPU, "made", "fault", faults=1)) == pytest.approx(1e-5)


def test_a_prefetch_costs_its_calls_and_its_batches() -> None:
    assert COSTS.moving(4 << 20, HOST, GPU, calls=2) == pytest.approx(2e-4 + 2e-6 + (4 << 20) / 1e10)
