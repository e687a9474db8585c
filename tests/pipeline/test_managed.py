"""Pages of managed slots: there when they are read, home when they are written, and without stale bytes if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray import events
from umarray.pipeline.managed import SHORT_CALL

ELEMENTS = 1024
BATCHES = 12


def run(fake: FakeDriver, workers: int, length: int = ELEMENTS) -> tuple[Any, list[set[Any]]]:
    """The report, and where each batch's pages were when it was prepared."""
    places: list[set[Any]] = []

    def prep(item: int, slot: Any) -> None:
        address, nbytes = slot["x"].ctypes.data, slot["x"].nbytes
        places.append(fake.where(address, nbytes))
        fake.host_touch(address, nbytes)
        slot.length = length
        slot["x"][:length] = item

    def compute(batch: Any) -> int:
        fake.launch(touches=[(batch["x"].ctypes.data, batch["x"].nbytes)])
        return int(batch["x"].sum())

    with um.Pipeline(
        range(BATCHES),
        prep,
        compute,
        like={"x": um.Spec(ELEMENTS, "int32")},
        transport="managed",
        workers=workers,
        slots=3,
    ) as p:
        assert list(p) == [item * length for item in range(BATCHES)]
        fake.synchronize()
        return p.report(), places


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("renews", [False, True])
@pytest.mark.parametrize("blocks", [False, True])
def test_no_page_faults_after_its_first_touch(
    make_fake: Callable[..., FakeDriver], workers: int, renews: bool, blocks: bool
) -> None:
    fake = make_fake(renews=renews, prefetch_blocks=blocks)
    report, places = run(fake, workers)
    assert fake.page_faults == 3  # the host's first touch of each slot
    assert all(place == {um.HOST} for place in places[3:])
    back = {call.name for call in fake.named("prefetch", "renew") if call.args["place"] == um.HOST}
    assert back == ({"renew"} if renews else {"prefetch"})
    assert report.bytes_moved == BATCHES * 4096 * (1 if renews else 2)  # no stale byte is asked for


def test_the_caller_s_thread_prepares_and_moves_as_well(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(renews=True)
    run(fake, 0)
    assert len({call.thread for call in fake.named("prefetch", "renew", "launch")}) == 1


def test_a_short_batch_moves_its_own_pages_only(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(page_size=4096)
    like = {"x": um.Spec(8 * 1024, "int32")}

    def prep(item: int, slot: Any) -> None:
        slot.length = 1025

    with um.Pipeline(range(5), prep, lambda batch: None, like=like, transport="managed", workers=1) as p:
        list(p)
    assert {call.args["nbytes"] for call in fake.named("prefetch")} == {8192}


def test_long_calls_have_threads_of_their_own(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake()
    like = {"x": um.Spec(SHORT_CALL + 1, "uint8")}
    with um.Pipeline(range(4), lambda item, slot: None, lambda b: None, like=like, transport="managed", workers=1) as p:
        list(p)
    there, back = (
        {call.thread for call in fake.named("prefetch") if (call.args["place"] == um.HOST) is home}
        for home in (False, True)
    )
    assert len(there) == len(back) == 1 and there != back


def test_a_prefetch_is_told(make_fake: Callable[..., FakeDriver]) -> None:
    told: list[Any] = []
    stop = events.listen(lambda record: told.append(record) if isinstance(record, events.Prefetched) else None)
    run(make_fake(), 1)
    stop()
    assert [record.to for record in told].count(um.Device(0)) == BATCHES and all(one.supported for one in told)
