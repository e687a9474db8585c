"""Waits for devices, counted and told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray import events
from umarray.residency.waits import Waits, given_streams


def test_all_of_each_device_or_the_streams_told(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(devices=2)
    stream = fake.create_stream(1)
    waits = Waits(None)
    waits._wait_for_devices(fake, [1, 0])
    assert [(call.stream, call.device) for call in fake.named("synchronize")] == [(None, 1), (None, 0)]
    assert waits.waits == 2 and waits.waited >= 0
    told = Waits([(0, None), (stream, 1)])
    told._wait_for_devices(fake, [0, 1])
    assert [(call.stream, call.device) for call in fake.named("synchronize")[2:]] == [(0, 0), (stream, 1)]
    Waits([])._wait_for_devices(fake, [0])
    assert fake.count("synchronize") == 4


def test_a_wait_is_told_with_its_reason(fake: FakeDriver) -> None:
    told = list[Any]()
    stop = events.listen(told.append)
    try:
        waits = Waits(None)
        waits._wait_for(fake, 0, 0, "a reason")
    finally:
        stop()
    assert told == [events.Waited(waits.waited, "a reason", 0, 0)]


def test_streams_as_people_give_them() -> None:
    stream = type("Stream", (), {"ptr": 7, "device_id": 1})()
    assert given_streams(stream) == [(7, 1)] and given_streams([stream, 3]) == [(7, 1), (3, None)]
    with pytest.raises(TypeError, match="2.5"):
        given_streams([2.5])
