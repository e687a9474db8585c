"""What `current` gives: stored, else defaults; read once; never measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fake_driver import FakeDriver
from umarray import drivers
from umarray.calibration import current, store
from umarray.calibration.defaults import defaults
from umarray.calibration.known import set_current
from umarray.drivers.host import HostDriver


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UMARRAY_CACHE", str(tmp_path))


def test_without_a_file_these_are_the_defaults_and_nothing_is_measured(fake: FakeDriver) -> None:
    assert current() == defaults(fake, 0) and not fake.named("allocate", "prefetch", "copy", "traverse")


def test_what_is_stored_is_read_once(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = replace(defaults(fake, 0), measured=True, seconds=0.7)
    store.save(store.key_of(fake, 0), stored)
    assert current(0) == stored
    monkeypatch.setattr(store, "load", lambda key: pytest.fail("read again"))
    assert current(0) == stored == current()


def test_devices_and_drivers_have_their_own(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(devices=2)
    second = replace(defaults(fake, 1), measured=True)
    set_current(1, second)
    assert current(1) is second and not current(0).measured
    make_fake(devices=2)
    assert not current(1).measured


def test_on_the_host_there_is_nothing() -> None:
    before = drivers.set_driver(HostDriver(("a test",)))
    try:
        assert current().prefetch is None and current(3).device == "no device"
    finally:
        drivers.set_driver(before)
