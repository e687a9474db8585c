"""What a pool may hold: argument before environment before default, and refusals that name the remedy."""

from __future__ import annotations

from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray.memory.budget import check_request, make_budget

GIB = 1 << 30
MIB = 1 << 20


def test_default_is_what_is_free_less_the_headroom(make_fake: Any) -> None:
    for capacity, spare in ((100 * GIB, 5 * GIB), (10 * GIB, GIB), (2 * GIB, GIB // 2)):
        budget = make_budget(make_fake(capacity=capacity), um.Device(0))
        assert (budget.first, budget.limit, budget.headroom) == (64 * MIB, capacity - spare, spare)


def test_what_others_use_is_not_free(make_fake: Any) -> None:
    from umarray.drivers.base import Kind

    fake: FakeDriver = make_fake(capacity=GIB)
    fake.allocate(400 * MIB, Kind.DEVICE, 0)
    assert make_budget(fake, um.Device(0), headroom=0).limit == GIB - 400 * MIB


def test_argument_before_environment_before_default(make_fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = make_fake(capacity=10 * GIB)
    monkeypatch.setenv("UMARRAY_ARENA", "10%")
    monkeypatch.setenv("CUPY_GPU_MEMORY_LIMIT", str(2 * GIB))
    assert make_budget(fake, um.Device(0)).first == GIB
    assert make_budget(fake, um.Device(0)).limit == 2 * GIB
    both = make_budget(fake, um.Device(0), "1MiB", "3GiB")
    assert (both.first, both.limit) == (MIB, 3 * GIB)
    monkeypatch.setenv("CUPY_GPU_MEMORY_LIMIT", "50%")
    assert make_budget(fake, um.Device(0)).limit == 5 * GIB


@pytest.mark.parametrize("off", ["", "0", "false"])
def test_an_environment_that_says_off_is_off(make_fake: Any, monkeypatch: pytest.MonkeyPatch, off: str) -> None:
    monkeypatch.setenv("UMARRAY_ARENA", off)
    monkeypatch.setenv("CUPY_GPU_MEMORY_LIMIT", off)
    budget = make_budget(make_fake(capacity=10 * GIB), um.Device(0))
    assert (budget.first, budget.limit) == (64 * MIB, 9 * GIB)


@pytest.mark.parametrize("name", ["UMARRAY_ARENA", "CUPY_GPU_MEMORY_LIMIT"])
def test_a_bad_environment_is_quoted(make_fake: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "lots")
    with pytest.raises(ValueError, match=f"{name} 'lots'"):
        make_budget(make_fake(), um.Device(0))


def test_a_device_limit_says_nothing_of_the_host(make_fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_GPU_MEMORY_LIMIT", "1000")
    assert make_budget(make_fake("host", pinned_capacity=8 * GIB), um.HOST).limit > GIB


def test_too_much_names_the_ratio_that_would_allow_it(make_fake: Any) -> None:
    fake = make_fake(capacity=10 * GIB)
    for arguments in ({"arena_bytes": "12GiB"}, {"limit": "12GiB"}):
        with pytest.raises(um.OutOfMemory, match=r"'12GiB'.*oversubscribe=1\.34"):
            make_budget(fake, um.Device(0), **arguments)
        assert make_budget(fake, um.Device(0), **arguments, oversubscribe=1.34).limit >= 12 * GIB
    with pytest.raises(um.OutOfMemory, match="above the limit"):
        make_budget(fake, um.Device(0), "2GiB", "1GiB")


@pytest.mark.parametrize("mode", ["explicit", "host"])
def test_oversubscription_needs_managed_mode(make_fake: Any, mode: str) -> None:
    with pytest.raises(um.NotSupported, match=r"oversubscribe=1\.5.*" + mode):
        check_request(make_fake(mode), oversubscribe=1.5)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"arena_bytes": 0}, ValueError),
        ({"arena_bytes": -1}, ValueError),
        ({"arena_bytes": float("nan")}, TypeError),
        ({"arena_bytes": 2**63}, ValueError),
        ({"arena_bytes": "much"}, ValueError),
        ({"arena_bytes": True}, TypeError),
        ({"limit": "0%"}, ValueError),
        ({"limit": []}, TypeError),
        ({"headroom": -5}, ValueError),
        ({"headroom": "x"}, ValueError),
        ({"oversubscribe": float("nan")}, ValueError),
        ({"oversubscribe": float("inf")}, ValueError),
        ({"oversubscribe": 0.5}, ValueError),
        ({"oversubscribe": "2"}, TypeError),
        ({"oversubscribe": True}, TypeError),
        ({"track": 1}, TypeError),
        ({"coarse_grain": "yes"}, TypeError),
    ],
)
def test_bad_values_are_quoted_and_touch_nothing(fake: FakeDriver, arguments: Any, error: type[Exception]) -> None:
    value = str(next(iter(arguments.values())))
    with pytest.raises(error) as caught:
        um.pool(**arguments)
    assert value in str(caught.value)
    assert not fake.named("allocate")
