"""Staged slots: pinned and plain device memory, one copy for a group, nothing copied that a short batch lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray.drivers.base import Kind
from umarray.pipeline import feed

LIKE = {"x": um.Spec((4, 64), "int32"), "y": um.Spec(4, "int64")}


def run(fake: FakeDriver, count: int, workers: int, length: int = 4, source: Any = None) -> list[int]:
    def prep(item: int, slot: Any) -> None:
        slot.length = length
        slot["x"][...] = item

    with um.Pipeline(
        range(count) if source is None else source,
        prep,
        lambda batch: int(batch["x"].sum()),
        like=LIKE,
        transport="staged",
        workers=workers,
    ) as p:
        return list(p)


def test_slots_are_pinned_and_plain_device_memory(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake()
    run(fake, 4, 1)
    assert [call.args["kind"] for call in fake.named("allocate")] == [Kind.PINNED] * 3 + [Kind.DEVICE] * 3


@pytest.mark.parametrize("length", [1, 4])
def test_small_batches_travel_in_groups_in_the_caller_s_thread(
    make_fake: Callable[..., FakeDriver], monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(feed, "GROUP_SECONDS", 10.0)
    fake = make_fake()
    assert run(fake, 33, 0, length) == [item * length * 64 for item in range(33)]
    copied = [call.args["nbytes"] for call in fake.named("copy")]  # one batch at first, then groups, each in one piece
    if length == 4:
        assert copied == [1056, 15 * 1280 + 1056, 15 * 1280 + 1056]
    else:
        assert copied == [256, 8, 15 * 1280 + 1024 + 8, 15 * 1280 + 1024 + 8]


@pytest.mark.parametrize("workers", [1, 2])
def test_threads_send_each_batch_as_soon_as_it_is_there(make_fake: Callable[..., FakeDriver], workers: int) -> None:
    fake = make_fake()
    run(fake, 33, workers)
    assert fake.count("copy") == 33


def test_an_iterator_is_never_read_ahead_of_need(make_fake: Callable[..., FakeDriver]) -> None:
    """It may wait for what is made of the batches before."""
    made: list[int] = []

    def source() -> Any:
        for item in range(20):
            assert len(made) == item
            yield item

    def compute(batch: Any) -> None:
        made.append(batch.index)

    make_fake()
    with um.Pipeline(source(), lambda i, slot: None, compute, like=LIKE, transport="staged", workers=0) as p:
        list(p)
    assert made == list(range(20))


def test_groups_stay_below_their_time(make_fake: Callable[..., FakeDriver], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "GROUP_SECONDS", 0.0)
    fake = make_fake()
    run(fake, 9, 0)
    assert fake.count("copy") == 9
