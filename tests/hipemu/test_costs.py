"""The modelled time of what pages did, against what the test card measured, and profile by profile."""

from __future__ import annotations

import pytest

from umarray import hipemu

from .conftest import Run, needs_emulator

pytestmark = needs_emulator


def test_the_h200_profile_gives_what_the_card_measured(emulated: Run) -> None:
    """256 MiB: 31 ms on demand, 5.3 ms prefetched, back at 18 GB/s, written by the host at 4.5 GB/s; 64 KiB pages."""
    emulated(
        """
        x = managed(256 << 20)
        host(x)[::1024] = 1
        def ms(work):
            with h.counters() as c:
                work()
            return c.modelled_seconds * 1e3
        def near(got, measured):
            assert abs(got / measured - 1) < 0.05, (got, measured)
        near(ms(lambda: write(x)), 31)
        near(ms(lambda: rt.memPrefetchAsync(x.data.ptr, x.nbytes, -1, 0)), x.nbytes / 18e9 * 1e3)
        near(ms(lambda: rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)), 5.3)
        def by_host():
            host(x)[::1024] += 1
        near(ms(by_host), x.nbytes / 4.5e9 * 1e3)
        once = ms(lambda: rt.memPrefetchAsync(x.data.ptr, 16 << 20, 0, 0))
        again = ms(lambda: rt.memPrefetchAsync(x.data.ptr, 16 << 20, 0, 0))
        assert once > 3 * again and abs(again - 0.07) < 1e-3  # what is there already costs the call
        """,
        profile="h200",
        memory="512MiB",
    )


@pytest.mark.parametrize("profile", hipemu.PROFILES)
def test_every_profile_charges_what_moves(emulated: Run, profile: str) -> None:
    emulated(
        """
        from umarray.hipemu.history import costs
        x = managed(8 << 20)
        pages = x.nbytes // PAGE
        def modelled(work):
            with h.counters() as c:
                work()
                rt.deviceSynchronize()
            return c
        def fill():
            host(x)[:] = 1
        def prefetch(place, nbytes=x.nbytes):
            return lambda: rt.memPrefetchAsync(x.data.ptr, nbytes, place, 0)
        fill()
        demanded = modelled(lambda: write(x))
        back = modelled(fill)
        fill()
        prefetched = modelled(prefetch(0))
        if rt.getDeviceProperties(0)["integrated"]:
            assert demanded.modelled_seconds == back.modelled_seconds == 0
            assert 0 < prefetched.modelled_seconds < 1e-4  # the call
        else:
            cost = costs()
            batches = x.nbytes // (2 << 20)
            near = lambda got, want: abs(got - want) < 1e-7 + 1e-6 * want
            assert near(demanded.modelled_seconds, pages * cost.fault + x.nbytes / cost.demand)
            assert near(back.host.modelled_seconds, pages * cost.host_fault + x.nbytes / cost.demand_back)
            assert near(prefetched.modelled_seconds, cost.call + batches * cost.batch + x.nbytes / cost.to_device)
            assert demanded.modelled_seconds > 2.5 * prefetched.modelled_seconds
            fill()
            modelled(prefetch(0, 2 * PAGE))
            rest = modelled(prefetch(0))  # one run of pages, which begins in the middle of a batch
            assert near(rest.modelled_seconds,
                        cost.call + batches * cost.batch + (x.nbytes - 2 * PAGE) / cost.to_device)
        """,
        profile=profile,
    )


def test_what_evicts_pays_for_it(emulated: Run) -> None:
    emulated(
        """
        from umarray.hipemu.history import costs
        x = managed(64 << 20)
        rt.memPrefetchAsync(x.data.ptr, x.nbytes, 0, 0)
        with h.counters() as c:
            p = rt.malloc(32 << 20)
        assert c.evicted_bytes == c.bytes_to_host == 32 << 20
        assert abs(c.by_device[0].modelled_seconds - (32 << 20) / costs().to_host) < 1e-6
        """,
        memory="64MiB",
    )
