from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from tests.residency.arrays import managed
from umarray import events
from umarray.drivers import ranges
from umarray.errors import ClosedError, NotSupported


class Profiler:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.library = ranges.RangeLibrary("a fake", self.start, self.stop)

    def start(self, name: str) -> str:
        self.heard.append(f"+{name}")
        return name

    def stop(self, one: str) -> None:
        self.heard.append(f"-{one}")


def test_scopes_views_and_epochs_are_ranges_by_name(fake: FakeDriver) -> None:
    profiler, x = Profiler(), managed(fake)
    with um.annotate(profiler.library), um.pool("1MiB") as pool:
        with pool.epoch("train"), um.prefetch(x), um.host_view(x, "r+"):
            pass
    with um.prefetch(x):
        pass
    assert profiler.heard == [
        "+umarray: epoch train",
        "+umarray: prefetch",
        "+umarray: host_view r+",
        "-umarray: host_view r+",
        "-umarray: prefetch",
        "-umarray: epoch train",
    ]


def test_what_is_open_at_its_end_is_ended(fake: FakeDriver) -> None:
    profiler, x = Profiler(), managed(fake)
    with um.prefetch(x), um.annotate(profiler.library):
        scope = um.prefetch(x)
        scope.__enter__()
    scope.__exit__(None, None, None)
    assert profiler.heard == ["+umarray: prefetch", "-umarray: prefetch"]


def test_the_library_is_the_vendors(make_fake: Callable[..., FakeDriver], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for name in ("nvtx", "roctx"):
        monkeypatch.setattr(ranges, name, lambda name=name: asked.append(name) or Profiler().library)
    driver: Any = make_fake()
    for driver.name in ("cuda", "hip"):
        with um.annotate():
            pass
    assert asked == ["nvtx", "roctx"]


def test_without_a_library_it_says_so_and_nothing_has_begun(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> ranges.RangeLibrary:
        raise NotSupported("ranges for rocprof need ROCm's roctx")

    monkeypatch.setattr(ranges, "roctx", missing)
    with pytest.raises(NotSupported, match="roctx"), um.annotate():
        raise AssertionError("not reached")
    assert not events.listeners


def test_a_library_that_raises_is_dropped(fake: FakeDriver) -> None:
    def broken(name: str) -> None:
        raise OSError("no")

    x = managed(fake)
    with um.annotate(ranges.RangeLibrary("broken", broken, broken)), um.prefetch(x) as scope:
        pass
    assert scope.tally.asked == 1


def test_it_is_entered_once_and_left_once() -> None:
    one = um.annotate(Profiler().library)
    with pytest.raises(ClosedError):
        one.__exit__(None, None, None)
    with one:
        pass
    with pytest.raises(ClosedError):
        one.__enter__()
    with pytest.raises(ClosedError):
        one.__exit__(None, None, None)
    with pytest.raises(TypeError):
        copy.copy(one)
