"""The tracker: live blocks, peaks, and lines."""

from __future__ import annotations

import threading

from umarray.memory.tracking import Tracker, calling_line


def test_counts_follow_blocks_that_die_anywhere() -> None:
    tracker = Tracker()
    blocks = [tracker.made(object(), 512 * number, 512, False, False) for number in range(10)]
    thread = threading.Thread(target=blocks.clear)
    thread.start()
    thread.join(10)
    blocks.append(tracker.made(object(), 0, 1024, False, False))
    assert (tracker.current_bytes, tracker.peak_bytes, tracker.total_bytes) == (1024, 5120, 6144)
    assert tracker.live() == [(0, 1024)]


def test_what_a_library_caches_is_no_escape() -> None:
    tracker = Tracker()
    kept = [tracker.made(object(), address, 512, False, False) for address in (0, 512)]
    assert [escape.count for escape in tracker.escaped(0, "e", libraries=[512])] == [1]
    assert tracker.escaped(2, "e") == ()
    assert len(kept) == 2


def test_a_block_keeps_what_it_stands_for() -> None:
    class Inner:
        pass

    import weakref

    tracker, inner = Tracker(), Inner()
    seen = weakref.ref(inner)
    block = tracker.made(inner, 0, 512, False, False)
    del inner
    assert seen() is not None
    del block
    assert seen() is None


def test_the_line_is_the_callers() -> None:
    assert calling_line().startswith(__file__)
