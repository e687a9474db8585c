"""Threads of one iteration: which there are, that they end, and that the first error is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray.pipeline.crew import Crew
from umarray.pipeline.engine import END, WAKE, Engine
from umarray.pipeline.layout import Layout
from umarray.pipeline.report import Clock
from umarray.pipeline.slots import Job
from umarray.pipeline.structure import Spec

PATIENCE = 10.0


def make(fake: FakeDriver, transport: str, items: Any = range(2), prep: Any = lambda item, slot: None) -> Crew:
    engine = Engine(fake, 0, Layout(Spec(4)), 3, transport, prep, Clock(fake))
    engine.restart()
    return Crew(engine, iter(items), 2, lambda: ValueError("empty"))


def end(crew: Crew) -> None:
    crew.stop()
    crew.join()
    crew.end_homing()
    crew._engine.close()


def threads() -> set[str]:
    found = {thread.name for thread in threading.enumerate()}
    return {name.removeprefix("umarray-pipeline-") for name in found if name.startswith("umarray-pipeline-")}


@pytest.mark.parametrize(
    ("transport", "blocks", "lanes"),
    [
        ("staged", True, set()),
        ("bus", True, set()),
        ("managed", False, set()),
        ("managed", True, {"transfer", "back"}),
    ],
)
def test_ways_that_keep_their_caller_have_threads(
    make_fake: Callable[..., FakeDriver], transport: str, blocks: bool, lanes: set[str]
) -> None:
    crew = make(make_fake(prefetch_blocks=blocks), transport)
    crew.start(prepare=False)
    assert threads() == lanes
    crew.feed.wake()
    inbox = crew._engine.inbox
    arrived = [inbox.get(timeout=PATIENCE) for _ in range(3)]
    assert [type(message) for message in arrived[:2]] == [Job, Job] and arrived[2] is END
    assert [message.slot.batch for message in arrived[:2]] == [0, 1]
    end(crew)
    assert threads() == set()


@pytest.mark.parametrize("transport", ["staged", "managed"])
def test_the_first_error_is_kept_and_everyone_is_woken(make_fake: Callable[..., FakeDriver], transport: str) -> None:
    def prep(item: int, slot: Any) -> None:
        raise LookupError(item)

    crew = make(make_fake(prefetch_blocks=True), transport, prep=prep)
    crew.start(prepare=True)
    assert crew._engine.inbox.get(timeout=PATIENCE) is WAKE
    assert isinstance(crew.error, LookupError) and crew.stopping
    crew.fail("compute", 7, ArithmeticError())
    assert isinstance(crew.take_error(), LookupError) and crew.error is None
    end(crew)


@pytest.mark.parametrize("call", ["prefetch", "renew"])
def test_an_error_of_a_way_is_told_with_its_stage(make_fake: Callable[..., FakeDriver], call: str) -> None:
    fake = make_fake(prefetch_blocks=True, renews=True)
    crew = make(fake, "managed", range(1))
    fake.fail(call, 700)
    crew.start(prepare=True)
    inbox, message = crew._engine.inbox, None
    while not isinstance(message, Job) and crew.error is None:
        message = inbox.get(timeout=PATIENCE)
    if call == "renew":
        assert isinstance(message, Job)
        lease = crew._engine.transport.reading.lend(message.slot, 0)
        del lease
        while crew.error is None:
            slot = crew._engine.handle(inbox.get(timeout=PATIENCE))
            if slot is not None:
                crew.send_home(slot)
    error = crew.take_error()
    if hasattr(error, "__notes__"):
        stage = "transfer" if call == "prefetch" else "back"
        assert error.__notes__ == [f"raised in the stage '{stage}' of an umarray.Pipeline"]
    end(crew)
    assert fake.live == {}
