from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray.drivers.host import HostDriver
from umarray.observe import counters, emulated, nvidia
from umarray.observe.counters import About, Counts


def test_a_figure_that_cannot_be_seen_is_none_and_never_zero() -> None:
    assert Counts().seen == () and Counts(device_faults=0).seen == ("device_faults",)
    assert Counts(device_faults=5).minus(Counts(device_faults=2, host_faults=1)) == Counts(device_faults=3)


def test_the_first_that_sees_a_figure_has_it() -> None:
    assert Counts(device_faults=0).or_else(Counts(device_faults=9, host_faults=1)) == Counts(0, 1)


def test_a_source_says_how_exact_it_is() -> None:
    assert str(About("a fake", "exact", ())) == "a fake (exact)"


@pytest.mark.parametrize("about", [emulated.ABOUT, nvidia.ABOUT])
def test_what_a_source_sees_are_figures_and_it_says_what_it_cannot(about: About) -> None:
    names = set(Counts.__dataclass_fields__) | {"addresses"}
    assert set(about.sees) <= names and about.blind


def test_without_a_device_nobody_tells() -> None:
    found = counters.sources(HostDriver(()))
    assert found.sources == () and found.reasons


def test_a_source_that_cannot_be_used_is_told_of_and_looked_for_once(
    make_fake: Callable[..., FakeDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver: Any = make_fake()
    driver.name = "cuda"
    tries: list[Any] = []

    def refuse(driver: Any) -> None:
        tries.append(driver)
        raise ImportError("No module named 'cupti'")

    monkeypatch.setattr(nvidia.cupti, "collector", refuse)
    first, second = counters.sources(driver), counters.sources(driver)
    assert first is second and len(tries) == 1
    assert first.sources == () and first.reasons == ("CUPTI cannot be used: No module named 'cupti'",)
