"""A calibration as plain values and back, and as text."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray.calibration.curve import Curve
from umarray.calibration.defaults import defaults
from umarray.calibration.figures import Calibration, described


def test_it_survives_json(fake: FakeDriver) -> None:
    found = replace(defaults(fake, 0), measured=True, seconds=0.5)
    again = Calibration.from_dict(json.loads(json.dumps(found.as_dict())))
    assert again == found and again.prefetch is not None and again.renew_back is None and "staged" in again.slots


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.pop("curves"),
        lambda v: v["curves"].pop("bus"),
        lambda v: v.update(measured="yes"),
        lambda v: v.update(device=None),
        lambda v: v.update(prefetch_blocks="no"),
        lambda v: v.update(prefetch_blocks=1),
        lambda v: v.update(seconds=float("nan")),
        lambda v: v["curves"].update(bus=[[1, -5]]),
        lambda v: v["curves"].update(bus=[]),
        lambda v: v["slots"].update(staged=3),
        lambda v: v.update(sources=None),
    ],
)
def test_values_that_are_none_of_ours_are_refused(fake: FakeDriver, change: Any) -> None:
    values = defaults(fake, 0).as_dict()
    change(values)
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        Calibration.from_dict(values)


def test_its_text_has_every_figure_with_its_source(fake: FakeDriver) -> None:
    fake.prefetch_blocks = True
    found = replace(defaults(fake, 0), prefetch_blocks=False)
    text = str(found)
    assert text.startswith("calibration of Fake: nothing was measured, these are stated defaults\n")
    for name in ("prefetch_back", "pageable_out", "host_write", "slot, managed"):
        assert name in text
    assert "no source" not in text and "returns before its pages have moved" in text
    assert "measured in 0.25 s" in str(replace(found, measured=True, seconds=0.25))
    assert "keeps its caller" in str(replace(found, prefetch_blocks=True))


def test_a_curve_in_words() -> None:
    assert described(Curve(((1024, 1e-5), (1 << 20, 2e-3)))) == "1.0 KiB 10.0 us, 1.0 MiB 2.00 ms (0.5 GB/s)"
    assert described(Curve(((1, 0.0),))) == "1 B 0.0 us"


def test_it_cannot_be_changed(fake: FakeDriver) -> None:
    found = defaults(fake, 0)
    with pytest.raises(AttributeError):
        found.seconds = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        found.slots["staged"] = Curve(((1, 1.0),))  # type: ignore[index]
    assert Calibration("x", False).slots == MappingProxyType({})
