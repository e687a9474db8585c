"""um.role: the presets, as a block and as a handle; what does not fit; honest like every scope."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from tests.residency.arrays import PAGE, address, hints, managed, prefetches, standing
from umarray import drivers
from umarray.calibration import Curve, current
from umarray.calibration.known import set_current
from umarray.drivers.base import Mode
from umarray.drivers.host import HostDriver
from umarray.errors import ClosedError, DriverError, UmarrayWarning, UnusedScopeWarning
from umarray.places import HOST, Device

Make = Callable[..., FakeDriver]
HERE, NOTHING = Device(0), (False, False, ())


@pytest.mark.parametrize(
    ("name", "writable", "advice", "place"),
    [
        ("weights", None, (False, HERE, ()), HERE),
        ("weights", False, (True, HERE, ()), HERE),
        ("table", None, (True, False, ()), HERE),
        ("table", True, (False, HERE, ()), HERE),
        ("cold", None, (False, HOST, (HERE,)), HOST),
        ("cold", False, (False, HOST, (HERE,)), HOST),
    ],
)
@pytest.mark.parametrize("handle", [False, True])
def test_a_role_is_a_combination_of_advice_and_a_move(
    fake: FakeDriver, name: str, writable: bool | None, advice: Any, place: Any, handle: bool
) -> None:
    x = managed(fake, 100)
    role = um.role(x, name, writable=writable)
    assert hints(fake) == 0
    if handle:
        assert role.apply() is role
    else:
        role.__enter__()
    assert standing(fake, x) == advice and prefetches(fake) == [(address(x), x.nbytes, place)]
    assert name in str(role) and ("on the host" in role.picked) == (place is HOST)
    if handle:
        role.undo()
    else:
        role.__exit__(None, None, None)
    assert standing(fake, x) == NOTHING and fake.where(address(x), x.nbytes) == {place}
    role.undo()  # again: nothing
    assert role.tally.not_restored == 0


@pytest.mark.parametrize(("bus", "place"), [(1e-6, HOST), (1e-2, HERE)])
def test_a_batch_is_copied_or_read_over_the_bus_as_costs_have_it(fake: FakeDriver, bus: float, place: Any) -> None:
    set_current(0, replace(current(0), bus=Curve(((1, bus),)), copy_managed=Curve(((1, 1e-4),))))
    x = managed(fake, 100)
    with um.role(x, "batch") as role:
        expected = (False, HERE, ()) if place == HERE else (False, HOST, (HERE,))
        assert standing(fake, x) == expected and "a copy takes" in role.picked
    assert standing(fake, x) == NOTHING


def test_a_table_that_does_not_fit_is_mapped_and_says_so(make_fake: Make) -> None:
    fake = make_fake(capacity=128 << 20)
    x = managed(fake, (80 << 20) // PAGE)
    with pytest.warns(UmarrayWarning, match='the role "table": on the host, reached over the bus: 80.0 MiB do not fit'):
        handle = um.role(x, "table").apply()
    assert standing(fake, x) == (False, HOST, (HERE,)) and prefetches(fake) == []
    handle.undo()
    assert standing(fake, x) == NOTHING


def test_the_device_is_the_one_named(make_fake: Make) -> None:
    fake = make_fake(devices=2)
    x = managed(fake, 10)
    with um.role(x, "weights", on=1):
        assert standing(fake, x)[1] == Device(1) and fake.where(address(x)) == {Device(1)}
    with um.role(x, "cold", on=1):
        assert standing(fake, x) == (False, HOST, (Device(1),))


@pytest.mark.parametrize("settings", [{"unified": True}, {"mode": Mode.EXPLICIT}])
@pytest.mark.parametrize("name", ["weights", "batch", "table", "cold"])
def test_where_nothing_moves_nothing_is_done(make_fake: Make, settings: dict[str, Any], name: str) -> None:
    fake = make_fake(**settings)
    with um.role(np.ones(1000), name) as role:
        pass
    if settings.get("unified"):
        with um.role(managed(fake, 100), name) as role:
            pass
    assert hints(fake) == 0 and role.picked.startswith("nothing")


def test_on_the_host_it_runs() -> None:
    before = drivers.set_driver(HostDriver(("a test",)))
    try:
        with um.role(np.ones(3), "table") as role:
            pass
        assert "nothing" in str(role)
    finally:
        drivers.set_driver(before)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((np.ones(2), "weight"), ValueError, "'weight'.*'weights', 'batch', 'table', 'cold'"),
        ((np.ones(2), None), TypeError, "None"),
        ((5, "table"), TypeError, "5"),
        ((np.ones(2), "table", "yes"), TypeError, "'yes'"),
        ((np.ones(2), "table", None, HOST), ValueError, "device"),
        ((np.ones(2), "table", None, 9), ValueError, "device 9"),
    ],
)
def test_bad_arguments_are_quoted(
    fake: FakeDriver, arguments: tuple[Any, ...], error: type[Exception], text: str
) -> None:
    x, name, writable, on = (*arguments, None, None)[:4]
    with pytest.raises(error, match=text):
        um.role(x, name, writable=writable, on=on)
    assert hints(fake) == 0


def test_a_role_that_is_never_applied_says_so_and_one_that_is_dropped_is_undone(fake: FakeDriver) -> None:
    x = managed(fake, 10)
    with pytest.warns(UnusedScopeWarning, match="role"):
        um.role(x, "weights")
        gc.collect()
    handle = um.role(x, "weights").apply()
    with pytest.raises(ClosedError):
        handle.apply()
    del handle
    gc.collect()
    assert standing(fake, x) == NOTHING


def test_pages_are_there_before_they_are_read_mostly(fake: FakeDriver) -> None:
    x, seen = managed(fake, 100), list[Any]()
    gate = fake.hold()

    def look(call: Any) -> None:
        if call.name == "synchronize":
            gate.open()
        if call.name == "advise":
            seen.append(fake.where(address(x), x.nbytes))

    fake.on_call = look
    with um.role(x, "table"):
        assert seen == [{HERE}]  # under the advice they would be copied, not moved


def test_a_move_that_fails_takes_the_advice_back(fake: FakeDriver) -> None:
    x = managed(fake, 10)
    fake.fail("prefetch", 700)
    with pytest.raises(DriverError, match="700"):
        um.role(x, "weights").apply()
    assert standing(fake, x) == NOTHING


def test_the_exception_of_the_block_comes_out_and_undo_inside_is_allowed(fake: FakeDriver) -> None:
    x = managed(fake, 10)
    with pytest.raises(KeyError), um.role(x, "weights"):
        raise KeyError
    assert standing(fake, x) == NOTHING
    with um.role(x, "weights") as role:
        role.undo()
        assert standing(fake, x) == NOTHING


def test_roles_and_scopes_nest_and_what_remains_is_the_outer_one(fake: FakeDriver) -> None:
    x = managed(fake, 10)
    with um.role(x, "weights"):
        with um.role(x, "cold"):
            assert standing(fake, x)[1] is HOST
        assert standing(fake, x) == (False, HERE, ())


def test_it_is_shown(fake: FakeDriver) -> None:
    with um.role({"w": managed(fake, 10)}, "weights") as role:
        page = role._repr_html_()
    assert "role, open" in page and "weights" in page and "Device(0)" in page
    assert str(role).startswith('role "weights", closed: on Device(0), where the work is; ')
