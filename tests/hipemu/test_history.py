"""The history of pages: what happened to which, in order, why, and who missed what."""

from __future__ import annotations

import pytest

from .conftest import Run, needs_emulator

pytestmark = needs_emulator


@pytest.mark.parametrize("way", ["auto", "mprotect"])
def test_a_run_of_faults_is_one_record(emulated: Run, way: str) -> None:
    emulated(
        """
        from umarray.hipemu import history
        x, y = managed(8 * PAGE), managed(8 * PAGE)
        host(x)[:] = 1
        double = kernel("for (long long i = 0; i < n; i++) y[i] = 2 * x[i];")
        with history.recorded() as happened:
            double(x, y)
        moved, made = happened
        assert moved[:8] == ("moved", "fault", x.data.ptr, 8 * PAGE, -1, 0, False, 8)
        assert made[:8] == ("made", "fault", y.data.ptr, 8 * PAGE, 0, 0, True, 8)
        assert 0 < moved.first <= moved.last
        with history.recorded() as happened:
            double(x, y)
        assert happened == []
        with history.recorded() as happened:
            host(x)[:] = 3
        assert [one[:8] for one in happened] == [("moved", "fault", x.data.ptr, 8 * PAGE, 0, -1, True, 8)]
        """,
        environ={"HIPEMU_FAULTS": way},
    )


def test_prefetched_pages_are_used_when_they_are_touched(emulated: Run) -> None:
    """The first touch of each is told, is no fault, and only counted where a prefetch brought the page."""
    emulated(
        """
        from umarray.hipemu import history
        x = managed(8 * PAGE)
        host(x)[:] = 1
        def use():
            with h.counters() as c:
                read(x[: 3 * PAGE // 4])
            assert c.device_faults == 0 and c.migrated_bytes == 0
        with history.recorded() as happened:
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)
            use()
            use()
        assert [one[:7] for one in happened] == [
            ("moved", "prefetch", x.data.ptr, 8 * PAGE, -1, 0, False),
            ("used", "fault", x.data.ptr, 3 * PAGE, 0, 0, False),
        ]
        use()  # the history is off, and the other pages open as they are touched
        with h.counters() as c:
            read(x)
        assert c.device_faults == 0
        with history.recorded() as happened:
            read(x)
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)  # there already
            read(x)
            rt.memPrefetchAsync(x.data.ptr, x.nbytes, -1, 0)  # on the host nothing is kept closed
            cupy.cuda.Device().synchronize()
            host(x)[0] = 1
        assert [one.kind for one in happened] == ["moved"]
        """
    )


def test_read_mostly_copies_and_the_write_that_drops_them(emulated: Run) -> None:
    emulated(
        """
        from umarray.hipemu import history
        x = managed(4 * PAGE)
        host(x)[:] = 1
        rt.memAdvise(x.data.ptr, x.nbytes, 1, 0)
        with history.recorded() as happened:
            read(x)
            host(x)[:] = 2
        assert [(one.kind, one.cause, one.origin, one.to, one.write, one.faults) for one in happened] == [
            ("copied", "fault", -1, 0, False, 4),
            ("dropped", "fault", -1, 0, True, 4),
        ]
        """
    )


def test_evictions_keep_the_order_of_each_page(emulated: Run) -> None:
    emulated(
        """
        from umarray.hipemu import history
        x = managed(6 * PAGE)
        host(x)[:] = 1
        filler = rt.malloc(rt.memGetInfo()[0] - 4 * PAGE)
        with history.recorded() as happened, h.counters() as c:
            for turn in range(3):
                read(x)
        assert c.device_faults == sum(one.faults for one in happened) == 18
        assert c.evicted_bytes == sum(one.nbytes for one in happened if one.cause == "eviction") == 14 * PAGE
        for page in range(6):
            at = x.data.ptr + page * PAGE
            mine = [one for one in happened if one.address <= at < one.address + one.nbytes]
            places = [one.to for one in mine]
            assert places[0] == 0 and all(a != b for a, b in zip(places, places[1:])), (page, mine)
        rt.free(filler)
        """,
        memory=16 << 20,
    )


def test_readers_do_not_disturb_each_other_and_are_told_what_they_missed(emulated: Run) -> None:
    emulated(
        """
        from umarray.hipemu import history
        x = managed(64 * PAGE)
        host(x)[:] = 1
        history.start(8)
        outer = history.mark()
        def touch(*pages):
            for page in pages:
                read(x[page * PAGE // 4 : (page + 1) * PAGE // 4])
        touch(0, 1)
        inner = history.mark()
        touch(2)  # continues the run in memory, and begins one for who came in between
        found, outer, lost = history.read(outer)
        assert [one.nbytes // PAGE for one in found] == [2, 1] and lost == 0
        assert [one.nbytes // PAGE for one in history.read(inner)[0]] == [1]
        touch(*range(4, 28, 2))
        found, outer, lost = history.read(outer)
        assert (len(found), lost) == (8, 4)
        assert history.read(outer) == ([], outer, 0)
        history.stop()
        touch(30)
        assert history.read(outer) == ([], outer, 0)
        """
    )


def test_costs_are_those_of_the_counters(emulated: Run) -> None:
    emulated(
        """
        from umarray.hipemu import history
        costs = history.costs()
        x = managed(8 * PAGE)
        host(x)[:] = 1
        with h.counters() as c:
            read(x)
        expected = 8 * costs.fault + 8 * PAGE / min(costs.demand, costs.to_device)
        assert abs(c.modelled_seconds - expected) < 1e-7, (c.modelled_seconds, expected)
        """
    )
