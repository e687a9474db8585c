"""Each fault that `explain` knows, run on the emulated device, and then with its remedy: found, gone, and worth it.

The saving is checked against the emulator's own modelled seconds: what the fault cost less what the remedy costs,
within a factor of two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.emulated.gates import Gate
from umarray import drivers, hipemu
from umarray.drivers.base import host_bytes
from umarray.observe.explain import Explanation, explain
from umarray.observe.findings import Finding
from umarray.observe.watch import watch
from umarray.places import HOST, Device

PAGE = hipemu.page_bytes()
N = 64  # pages of an array


@pytest.fixture
def cupy(migrating: Any) -> Any:
    assert drivers.get_driver().traits(0).managed  # probed, before a stream is held
    return migrating


@pytest.fixture
def pool(cupy: Any) -> Iterator[Any]:
    with um.pool("8MiB") as made:
        yield made
    drivers.get_driver().synchronize()


@dataclass
class Seen:
    """What a watch explained, and what it cost by the emulator's own count."""

    explanation: Explanation
    seconds: float

    def find(self, title: str) -> Finding:
        found = [one for one in self.explanation if one.title == title]
        assert len(found) == 1, f"{title}: {self.explanation}"
        return found[0]

    def nothing(self) -> None:
        assert not self.explanation, str(self.explanation)


def seen(work: Callable[[], object]) -> Seen:
    with hipemu.counters() as c, watch(sync=True) as w:
        work()
    return Seen(explain(w), c.modelled_seconds)


def was_right(finding: Finding, before: Seen, after: Seen) -> None:
    """The saving that was expected, against the one that came."""
    assert finding.modelled and "modelled" in finding.saves
    real = before.seconds - after.seconds
    assert real / 2 <= finding.saving <= real * 2, (finding.saving, real)


def fresh(count: int = N, value: int = 1, *, unadvised: bool = False) -> Any:
    """An array of whole pages that live on the host; `unadvised`: in no arena, which would prefer its device."""
    cupy = drivers.get_driver().xp
    if unadvised:
        x = cupy.ndarray(count * PAGE, "u1", cupy.cuda.malloc_managed(count * PAGE))
    else:
        x = um.empty(count * PAGE, "u1", page_aligned=True)
    drivers.get_driver().synchronize()
    host(x)[...] = value
    assert hipemu.where(x.data.ptr, x.nbytes) == [-1] * count
    return x


def host(x: Any) -> Any:
    """The host's own hands on managed memory, as a program has them that knows no host view."""
    return host_bytes(x.data.ptr, x.nbytes, x)


def plain(pool: Any, nbytes: int, device: int = 0) -> Any:
    with drivers.get_driver().xp.cuda.Device(device), pool.plain():
        return drivers.get_driver().xp.empty(nbytes, "u1")


# One fault each


def test_on_demand_faults(cupy: Any, pool: Any) -> None:
    out = plain(pool, N * PAGE)
    table = fresh()

    def remedied() -> None:
        with um.prefetch(table):
            cupy.add(table, 1, out=out)

    before = seen(lambda: cupy.add(table, 1, out=out))
    table = fresh()
    after = seen(remedied)
    finding = before.find("on-demand faults")
    assert finding.subject is not None and finding.subject.name == "table"
    assert finding.evidence["faults"] == N and finding.evidence["moved bytes"] == N * PAGE
    assert finding.remedy == "with um.prefetch(table):"
    was_right(finding, before, after)
    after.nothing()


def test_prefetched_too_late(cupy: Any, pool: Any) -> None:
    out = plain(pool, N * PAGE)
    cupy.add(out, 1, out=out)  # compiled

    def queued_first(x: Any) -> None:
        stream = cupy.cuda.Stream(non_blocking=True)
        gate = Gate(stream)
        with stream:
            cupy.add(x, 1, out=out)
            with um.prefetch(x, wait=False):
                pass
        gate.open()

    def prefetched_first(x: Any) -> None:
        stream = cupy.cuda.Stream(non_blocking=True)
        gate = Gate(stream)
        with stream, um.prefetch(x):
            cupy.add(x, 1, out=out)
        gate.open()

    batch = fresh()
    before = seen(lambda: queued_first(batch))
    batch = fresh()
    after = seen(lambda: prefetched_first(batch))
    finding = before.find("prefetched too late")
    assert finding.subject is not None and finding.subject.name == "batch"
    assert finding.evidence["late bytes"] == N * PAGE
    was_right(finding, before, after)
    after.nothing()


def test_prefetched_and_never_used(cupy: Any, pool: Any) -> None:
    many = 4096
    out, some = plain(pool, PAGE), slice(0, PAGE)

    def prefetch(what: Any) -> None:
        with um.prefetch(what):
            cupy.add(table[some], 1, out=out)

    table = fresh(many)
    before = seen(lambda: prefetch(table))
    table = fresh(many)
    after = seen(lambda: prefetch(table[some]))
    finding = before.find("prefetched and never used")
    assert finding.evidence == {"prefetched bytes": many * PAGE, "unused bytes": (many - 1) * PAGE}
    assert finding.remedy.startswith("with um.prefetch(table[used]):")
    was_right(finding, before, after)
    after.nothing()
    table = fresh(many)
    whole = seen(lambda: um.move(table, to=0)).find("prefetched and never used")
    assert whole.remedy == "# leave um.prefetch(table) out"


def test_bouncing_between_host_and_device(cupy: Any, pool: Any) -> None:
    def by_hand() -> None:
        for _ in range(4):
            cupy.add(state, 1, out=state)
            drivers.get_driver().synchronize()
            host(state)[...] += 1

    def by_view() -> None:
        for _ in range(4):
            cupy.add(state, 1, out=state)
            with um.host_view(state, "r+") as h:
                h += 1

    state = fresh()
    before = seen(by_hand)
    state = fresh()
    after = seen(by_view)
    finding = before.find("bouncing")
    assert (finding.evidence["rounds"], finding.evidence["faults"]) == (4, 8 * N)
    was_right(finding, before, after)
    assert all(one.title != "bouncing" for one in after.explanation)


def test_bouncing_between_devices(two: Any, pool: Any) -> None:
    outs = [plain(pool, N * PAGE, device) for device in (0, 1)]

    def take_turns() -> None:
        for _ in range(4):
            for device in (0, 1):
                view = drivers.get_driver().as_array(table.data.ptr, table.nbytes, table, device)
                with two.cuda.Device(device):
                    two.add(view, 1, out=outs[device])
                    drivers.get_driver().synchronize(device=device)

    def advised() -> None:
        with um.advise(table, read_mostly=True):
            take_turns()

    table = fresh(unadvised=True)
    before = seen(take_turns)
    table = fresh(unadvised=True)
    after = seen(advised)
    finding = before.find("bouncing")
    assert finding.remedy == "with um.advise(table, read_mostly=True):"
    was_right(finding, before, after)
    assert all(one.title != "bouncing" for one in after.explanation)


def test_a_table_read_at_random(cupy: Any, pool: Any) -> None:
    rows = 512
    order = cupy.asarray(np.random.default_rng(0).permutation(rows)[: rows // 2])
    out = plain(pool, rows * PAGE).reshape(rows, PAGE)[: rows // 2]

    def look_up() -> None:
        cupy.take(table, order, axis=0, out=out)

    def whole() -> None:
        with um.advise(table, read_mostly=True), um.prefetch(table):
            look_up()
            drivers.get_driver().synchronize()

    table = fresh(rows).reshape(rows, PAGE)
    before = seen(look_up)
    table = fresh(rows).reshape(rows, PAGE)
    after = seen(whole)
    finding = before.find("a table read at random")
    assert finding.subject is not None and finding.subject.shape == (rows, PAGE)
    assert finding.evidence["faults"] == rows // 2
    assert finding.remedy == "with um.advise(table, read_mostly=True), um.prefetch(table):"
    was_right(finding, before, after)
    after.nothing()


def test_read_mostly_that_is_written(cupy: Any, pool: Any) -> None:
    out = plain(pool, N * PAGE)

    def advised() -> None:
        with um.advise(table, read_mostly=True):
            for turn in range(4):
                host(table)[...] = turn
                cupy.add(table, 1, out=out)
                drivers.get_driver().synchronize()

    def viewed() -> None:
        for turn in range(4):
            with um.host_view(table, "r+") as h:
                h[...] = turn
            cupy.add(table, 1, out=out)

    table = fresh()
    before = seen(advised)
    table = fresh()
    after = seen(viewed)
    finding = before.find("read-mostly, and written")
    assert finding.evidence["copied bytes"] == 4 * N * PAGE
    was_right(finding, before, after)
    assert all(one.title != "read-mostly, and written" for one in after.explanation)


def test_thrash_from_oversubscription(cupy: Any, pool: Any) -> None:
    room = 2 * N * PAGE
    free = drivers.get_driver().memory_info(Device(0)).free
    filler, out = plain(pool, free - room - N * PAGE), plain(pool, N * PAGE)

    def sweep() -> None:
        for _ in range(4):
            for x in (first, second, third):
                cupy.add(x, 1, out=out)
        drivers.get_driver().synchronize()

    def left_out() -> None:
        with um.advise(third, preferred_location=HOST, accessed_by=Device(0)):
            sweep()

    first, second, third = fresh(), fresh(), fresh()
    before = seen(sweep)
    finding = before.find("thrash from oversubscription")
    assert finding.evidence["working set bytes"] == 3 * N * PAGE and finding.evidence["room bytes"] == room
    assert finding.subject is not None and finding.subject.name in ("first", "second", "third")
    first, second, third = fresh(), fresh(), fresh()
    after = seen(left_out)
    was_right(finding, before, after)
    assert all(one.title != finding.title for one in after.explanation)
    del filler


def test_stale_bytes_moved_to_the_device(cupy: Any, pool: Any) -> None:
    source = plain(pool, N * PAGE)

    def overwrite() -> None:
        cupy.add(source, 1, out=result)

    def declared() -> None:
        with um.access(writes=[result]):
            overwrite()

    result = fresh()
    before = seen(overwrite)
    result = fresh()
    after = seen(declared)
    finding = before.find("stale bytes moved")
    assert finding.evidence["stale bytes"] == N * PAGE and finding.remedy == "with um.access(writes=[result]):"
    was_right(finding, before, after)
    after.nothing()


def test_stale_bytes_moved_to_the_host(cupy: Any, pool: Any) -> None:
    def by_hand() -> None:
        host(batch)[...] = 3

    def by_view() -> None:
        with um.host_view(batch, "w") as h:
            h[...] = 3

    def on_device() -> Any:
        x = fresh()
        cupy.add(x, 1, out=x)
        drivers.get_driver().synchronize()
        return x

    batch = on_device()
    before = seen(by_hand)
    batch = on_device()
    after = seen(by_view)
    finding = before.find("stale bytes moved")
    assert finding.remedy == 'with um.host_view(batch, "w") as h:'
    was_right(finding, before, after)
    after.nothing()


def test_a_prefetch_on_the_default_stream(cupy: Any, pool: Any) -> None:
    many = 2048
    out = plain(pool, many * PAGE)

    def prefetch(**stream: Any) -> None:
        with um.prefetch(batch, **stream):
            cupy.add(batch, 1, out=out)

    batch = fresh(many)
    before = seen(lambda: prefetch(stream=0))
    batch = fresh(many)
    after = seen(prefetch)
    finding = before.find("prefetch on the default stream")
    assert finding.evidence["moved bytes"] == many * PAGE
    assert before.seconds / 2 <= finding.saving <= before.seconds  # all that moved could have been hidden
    assert str(finding.evidence["asked at"]).startswith(f"{__file__}:")
    after.nothing()


def test_small_arrays_that_share_a_page(cupy: Any, pool: Any) -> None:
    def take_turns() -> None:
        for _ in range(20):
            cupy.add(here, 1, out=here)
            drivers.get_driver().synchronize()
            host(there)[...] += 1

    def pair(**aligned: bool) -> tuple[Any, Any]:
        x, y = um.zeros(100, "u1", **aligned), um.zeros(100, "u1", **aligned)
        drivers.get_driver().synchronize()
        host(x)[...] = host(y)[...] = 0
        return x, y

    here, there = pair()
    before = seen(take_turns)
    here, there = pair(page_aligned=True)
    after = seen(take_turns)
    finding = before.find("arrays that share a page")
    assert finding.subject is not None and finding.subject.name in ("here", "there")
    assert finding.evidence["pages"] == 1 and "page_aligned=True" in finding.remedy
    was_right(finding, before, after)
    after.nothing()


def test_escapes(cupy: Any) -> None:
    kept: list[Any] = []

    def step(keep: bool) -> None:
        with um.pool("8MiB", track=True) as pool:
            for _ in range(3):
                with pool.epoch("step"):
                    activation = um.zeros(PAGE, "u1")
                    if keep:
                        kept.append(activation)
                    del activation

    before, after = seen(lambda: step(True)), seen(lambda: step(False))
    finding = before.find("escapes")
    assert finding.evidence == {"arrays": 3, "escaped bytes": 3 * PAGE, "epochs": 1, "held by": "kept[2]"}
    assert finding.saving_bytes == 3 * PAGE == sum(x.nbytes for x in kept)
    assert finding.subject is not None and finding.subject.name == "activation"
    assert finding.subject.line.startswith(f"{__file__}:")
    after.nothing()


def test_fragmentation(cupy: Any) -> None:
    def loop(pool: Any, lasting: Callable[[], Any]) -> list[Any]:
        kept = []
        for _ in range(32):
            scratch = um.empty(64 * PAGE, "u1", pool=pool)
            with lasting():
                kept.append(um.empty(PAGE, "u1", pool=pool))
            del scratch
            held.append(um.empty(63 * PAGE, "u1", pool=pool))
        held.clear()
        return kept

    held: list[Any] = []
    with um.pool("32MiB", track=True) as pool:
        kept: list[Any] = []
        before = seen(lambda: kept.extend(loop(pool, nullcontext)))
        finding = before.find("fragmentation")
        holes = finding.evidence["holes bytes"]
        assert isinstance(holes, int) and holes > 32 * 32 * PAGE
        spread = max(x.data.ptr for x in kept) - min(x.data.ptr for x in kept)
        assert spread / 2 <= holes + 32 * PAGE <= spread * 2
        kept.clear()
    with um.pool("32MiB", track=True) as pool:
        after = seen(lambda: kept.extend(loop(pool, pool.persistent)))
        after.nothing()
        kept.clear()


def test_the_host_and_the_device_take_turns(cupy: Any, pool: Any) -> None:
    """Work of either side is a pause of 50 ms: what is measured is whether they overlap."""
    turns, pause = 6, 0.05
    out = um.zeros(PAGE, "u1")

    def compute() -> None:
        cupy.cuda.get_current_stream().add_callback(lambda *_: time.sleep(pause), None)

    def in_turn() -> None:
        for turn in range(turns):
            with um.host_view(out, "r+") as h:  # what it reads must be there
                h[...] = turn
                time.sleep(pause)
            compute()

    def prepare(item: int, slot: Any) -> None:
        slot["x"][...] = item
        time.sleep(pause)

    def pipelined() -> None:
        like = {"x": um.Spec((PAGE,), "u1")}
        with um.Pipeline(range(turns), prepare, lambda batch: compute(), like=like) as pipeline:
            for _ in pipeline:
                pass

    with cupy.cuda.Stream(non_blocking=True):  # HIP calls nobody back on the default stream
        pipelined()  # what is made once is made
        before, after = seen(in_turn), seen(pipelined)
    finding = before.find("the host and the device take turns")
    assert not finding.modelled and finding.evidence["views"] == turns
    real = before.explanation.seconds - after.explanation.seconds
    assert real / 2 <= finding.saving <= real * 2, (finding.saving, real)
    assert all(one.title != finding.title for one in after.explanation)
