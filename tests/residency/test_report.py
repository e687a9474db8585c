"""residency: what was asked, who says so, and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from tests.residency.arrays import managed
from umarray.drivers.base import Kind
from umarray.places import HOST, Device
from umarray.residency.ledger import Standing


def test_the_runtime_is_asked_first(fake: FakeDriver) -> None:
    x = managed(fake)
    assert (um.residency(x).last_asked, um.residency(x).evidence) == (None, "runtime")
    um.move(x, to=0)
    found = um.residency(x)
    assert (found.kind, found.last_asked, found.evidence, found.nbytes) == ("managed", Device(0), "runtime", x.nbytes)
    fake.host_touch(fake.named("prefetch")[0].args["address"], x.nbytes)
    assert um.residency(x).last_asked == Device(0)  # asked is not moved
    um.move(x[1024:], to=HOST)
    assert um.residency(x).last_asked is None and "or several" in um.residency(x).source
    assert um.residency(x[:10]).last_asked == Device(0) and um.residency(x[-10::-1]).last_asked is None


def test_our_own_record_where_the_runtime_cannot_say(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(readable_ranges=False)
    x = managed(fake)
    assert (um.residency(x).last_asked, um.residency(x).evidence) == (None, "none")
    um.move(x, to=HOST)
    assert (um.residency(x).last_asked, um.residency(x).evidence) == (HOST, "umarray's own record")
    um.move(x[:1024], to=0)
    found = um.residency(x)
    assert found.last_asked is None and "HOST: 12.0 KiB" in found.source and "Device(0): 4.0 KiB" in found.source


def test_an_unsupported_prefetch_is_not_told_as_asked(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(missing=["prefetch", "read_range"])
    x = managed(fake)
    um.move(x, to=0)
    assert um.residency(x).last_asked is None


def test_advice_that_stands(fake: FakeDriver) -> None:
    x = managed(fake)
    with um.advise(x[:2048], read_mostly=True, accessed_by=HOST):
        found = um.residency(x)
        assert set(found.advice) == {Standing("read_mostly", None, 8192), Standing("accessed_by", HOST, 8192)}
        assert "read_mostly" in str(found) and "accessed_by HOST" in str(found)
        assert um.residency(x[2048:]).advice == ()
    assert um.residency(x).advice == () and str(um.residency(x)).endswith("none")


@pytest.mark.parametrize("kind", [Kind.DEVICE, Kind.PINNED])
def test_memory_that_does_not_move(fake: FakeDriver, kind: Kind) -> None:
    found = um.residency(managed(fake, kind=kind))
    assert (found.kind, found.last_asked, found.evidence) == (kind.value, None, "none")


def test_numpy_and_empty_arrays_and_what_is_no_array(fake: FakeDriver) -> None:
    assert um.residency(np.ones(3)).kind == "host"
    assert um.residency(np.ones(0)).nbytes == 0
    with pytest.raises(TypeError, match="'x'"):
        um.residency("x")
    with pytest.raises(FrozenInstanceError):
        um.residency(np.ones(3)).kind = "managed"  # type: ignore[misc]
