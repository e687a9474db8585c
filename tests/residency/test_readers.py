"""Which open scopes read which pages where."""

from __future__ import annotations

from tests.fake_driver import FakeDriver
from tests.residency.arrays import PAGE, managed
from umarray.residency.readers import Readers
from umarray.residency.spans import spans_of


def test_pages_that_another_device_reads(fake: FakeDriver) -> None:
    span = spans_of([managed(fake, 4)], fake.find, PAGE).outward()[0]
    readers, first, second = Readers(), object(), object()
    readers.enter(first, 0, [(span.start, span.start + PAGE)])
    assert readers.elsewhere(span, 1) and not readers.elsewhere(span, 0)
    assert not readers.elsewhere(span._replace(start=span.start + PAGE), 1)
    readers.enter(second, 1, [(span.start, span.stop)])
    assert readers.elsewhere(span, 0)
    readers.leave(first)
    assert not readers.elsewhere(span, 1)
    readers.leave(second)
    readers.leave(second)
    assert not readers.elsewhere(span, 0)
