"""Single samples: what is timed, what is not, and which a machine can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray.calibration import samples as module
from umarray.calibration.measure import buffers
from umarray.calibration.samples import samples
from umarray.places import HOST, Device

N = 1 << 20


@pytest.mark.parametrize(
    ("settings", "figures", "slots"),
    [
        ({}, 13, {"staged", "bus", "managed"}),
        ({"renews": True}, 15, {"staged", "bus", "managed"}),
        ({"unified": True}, 6, {"direct", "staged"}),
        ({"mode": "explicit"}, 6, {"staged", "bus"}),
    ],
)
def test_a_machine_has_the_figures_that_it_can_have(
    make_fake: Callable[..., FakeDriver], settings: dict[str, Any], figures: int, slots: set[str]
) -> None:
    found, turns = samples(make_fake(**settings), 0)
    assert len(found) == figures and set(turns) == slots


def test_only_the_work_itself_is_timed(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock moves with certain calls alone: a sample counts those that are its own."""
    now, ticking = [0.0], list[str]()

    def tick(call: Any) -> None:
        if call.name in ticking:
            now[0] += 1

    fake.on_call = tick
    monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    with buffers(fake, 0) as (bench, _):
        ticking[:] = ["prefetch"]
        figures, slots = samples(fake, 0)
        assert [figures[name](bench, N) for name in ("prefetch", "prefetch_back", "prefetch_there")] == [1, 1, 1]
        assert [figures[name](bench, N) for name in ("copy_in", "demand", "demand_back", "bus")] == [0, 0, 0, 0]
        assert slots["managed"](bench, N) == 3 and slots["staged"](bench, N) == 0  # there, home, home to be written
        ticking[:] = ["copy"]
        assert [figures[name](bench, N) for name in ("copy_in", "copy_managed", "pageable_out")] == [1, 1, 1]
        ticking[:] = ["traverse"]
        assert [figures[name](bench, N) for name in ("demand", "bus")] == [0, 0]  # the kernel itself is taken off


def test_pages_are_where_they_should_be_after_each(fake: FakeDriver) -> None:
    with buffers(fake, 0) as (bench, _):
        figures, _ = samples(fake, 0)
        for name, place in {
            "prefetch": Device(0),
            "prefetch_back": HOST,
            "demand": Device(0),
            "bus": Device(0),
        }.items():
            figures[name](bench, N)
            assert fake.where(bench.managed, N) == {place}, name
