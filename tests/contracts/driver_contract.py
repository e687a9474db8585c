"""What every driver must do, whatever it stands on. A subclass gives the `driver` fixture and, where the host cannot
touch plain device memory, its own back door, so that a driver's writes are not checked by its own reads.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from typing import Any, ClassVar

import pytest

from umarray import events
from umarray.drivers.base import Advice, Allocation, Attribute, Driver, Kind, Mode, Outcome
from umarray.errors import DriverError, OutOfMemory
from umarray.places import HOST, Device

KINDS = list(Kind)


class DriverContract:
    """Behaviour tests; collected only through a subclass named Test..."""

    kinds: ClassVar[list[Kind]] = KINDS

    @pytest.fixture
    def driver(self) -> Driver:
        raise NotImplementedError

    def poke(self, driver: Driver, address: int, data: bytes, kind: Kind) -> None:
        ctypes.memmove(address, data, len(data))

    def peek(self, driver: Driver, address: int, nbytes: int, kind: Kind) -> bytes:
        return ctypes.string_at(address, nbytes)

    def takes(self, driver: Driver, advice: Advice, place: Any) -> bool:
        """Whether an advice is more than a no-op here."""
        if driver.device_count() == 0 or not driver.traits(0).managed:
            return False
        return advice is not Advice.COARSE_GRAIN or driver.traits(0).coarse_grain

    @pytest.fixture
    def blocks(self, driver: Driver) -> Any:
        """Allocate, and free at the end."""
        made: list[Allocation] = []

        def allocate(kind: Kind, pages: int = 4, device: int | None = None) -> Allocation:
            made.append(driver.allocate(pages * driver.page_size, kind, device))
            return made[-1]

        yield allocate
        driver.synchronize()
        for block in made:
            if driver.find(block.address) == block:
                driver.free(block)

    @pytest.fixture
    def stream(self, driver: Driver) -> Any:
        handle = driver.create_stream(0)
        yield handle
        driver.synchronize(handle, 0)
        driver.destroy_stream(handle, 0)

    def test_it_is_a_driver_and_says_why(self, driver: Driver) -> None:
        assert isinstance(driver, Driver)
        assert driver.reasons and all(isinstance(reason, str) for reason in driver.reasons)
        assert all(isinstance(text, str) for pair in driver.versions().items() for text in pair)
        assert isinstance(driver.advice(), tuple)

    # Devices

    def test_devices_have_traits_with_reasons(self, driver: Driver) -> None:
        for index in range(driver.device_count()):
            traits = driver.traits(index)
            assert traits.device == Device(index) and traits.reasons and traits.total_bytes > 0
            assert traits.managed or not (traits.prefetch or traits.unified or driver.mode is Mode.MANAGED)
            assert driver.traits(index) == traits
        assert driver.current_device() == 0

    @pytest.mark.parametrize("place", [HOST, Device(0)])
    def test_free_memory_is_part_of_all(self, driver: Driver, place: Any) -> None:
        info = driver.memory_info(place)
        assert 0 < info.free <= info.total

    # Memory

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_allocation_is_page_aligned_and_all_of_it_holds_bytes(
        self, driver: Driver, blocks: Any, kind: Kind
    ) -> None:
        block = blocks(kind, 3)
        assert block.address % driver.page_size == 0
        assert (block.nbytes, block.kind) == (3 * driver.page_size, kind)
        data = bytes(range(256)) * (block.nbytes // 256)
        self.poke(driver, block.address, data, kind)
        assert self.peek(driver, block.address, block.nbytes, kind) == data

    @pytest.mark.parametrize("kind", KINDS)
    def test_live_allocations_are_apart_and_tell_themselves(self, driver: Driver, blocks: Any, kind: Kind) -> None:
        made = sorted((blocks(kind, 1 + index % 3) for index in range(8)), key=lambda block: block.address)
        assert len({block.serial for block in made}) == 8
        assert all(left.address + left.nbytes <= right.address for left, right in zip(made, made[1:], strict=False))

    @pytest.mark.parametrize("kind", KINDS)
    def test_find_knows_ours_and_only_while_it_lives(self, driver: Driver, blocks: Any, kind: Kind) -> None:
        block = blocks(kind)
        for offset in (0, 1, block.nbytes - 1):
            assert driver.find(block.address + offset) == block
        driver.free(block)
        found = driver.find(block.address)
        assert found is None or found.serial != block.serial

    def test_find_says_nothing_of_ordinary_memory(self, driver: Driver) -> None:
        ordinary = ctypes.create_string_buffer(64)
        assert driver.find(ctypes.addressof(ordinary)) is None

    @pytest.mark.parametrize("kind", KINDS)
    def test_freeing_twice_is_refused(self, driver: Driver, kind: Kind) -> None:
        block = driver.allocate(driver.page_size, kind)
        driver.free(block)
        with pytest.raises(ValueError, match="freed before"):
            driver.free(block)

    def test_what_cannot_be_had_is_out_of_memory_and_changes_nothing(self, driver: Driver, blocks: Any) -> None:
        with pytest.raises(OutOfMemory) as caught:
            driver.allocate(1 << 50, Kind.DEVICE)
        assert caught.value.requested == 1 << 50 and caught.value.limit > 0
        assert blocks(Kind.DEVICE).nbytes

    def test_allocations_are_told_to_listeners(self, driver: Driver) -> None:
        told: list[events.Record] = []
        stop = events.listen(told.append)
        try:
            block = driver.allocate(driver.page_size, Kind.MANAGED)
            driver.free(block)
        finally:
            stop()
        where = (block.address, block.nbytes, "managed", block.place)
        assert told == [events.Allocated(*where), events.Freed(*where)]

    def test_threads_get_memory_apart(self, driver: Driver) -> None:
        made: list[Allocation] = []

        def work() -> None:
            for _ in range(10):
                made.append(driver.allocate(driver.page_size, Kind.MANAGED))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len({block.address for block in made}) == len({block.serial for block in made}) == 40
        for block in made:
            driver.free(block)

    @pytest.mark.parametrize("kind", [Kind.MANAGED, Kind.DEVICE])
    def test_an_array_and_its_views_keep_their_owner(self, driver: Driver, blocks: Any, kind: Kind) -> None:
        class Owner:
            pass

        block, owner = blocks(kind), Owner()
        gone = weakref.ref(owner)
        array = driver.as_array(block.address, block.nbytes, owner, 0)
        assert isinstance(array, driver.xp.ndarray) and array.shape == (block.nbytes,) and array.dtype == "u1"
        view = array.view("u4")[2:7]
        del owner, array
        gc.collect()
        assert gone() is not None
        del view
        gc.collect()
        assert gone() is None

    # Work

    @pytest.mark.parametrize("source_kind", KINDS)
    @pytest.mark.parametrize("target_kind", KINDS)
    def test_copy(self, driver: Driver, blocks: Any, stream: int, source_kind: Kind, target_kind: Kind) -> None:
        source, target = blocks(source_kind), blocks(target_kind)
        self.poke(driver, target.address, b"\x00" * target.nbytes, target_kind)
        self.poke(driver, source.address, b"\xa5" * source.nbytes, source_kind)
        driver.copy(target.address + 512, source.address + 64, 1000, stream)
        driver.synchronize(stream, 0)
        expected = b"\x00" * 512 + b"\xa5" * 1000 + b"\x00" * (target.nbytes - 1512)
        assert self.peek(driver, target.address, target.nbytes, target_kind) == expected

    @pytest.mark.parametrize("kind", [Kind.MANAGED, Kind.DEVICE])
    def test_fill(self, driver: Driver, blocks: Any, stream: int, kind: Kind) -> None:
        block = blocks(kind)
        self.poke(driver, block.address, b"\x00" * block.nbytes, kind)
        driver.fill(block.address + 16, 0xFE, 100, stream)
        driver.synchronize(stream, 0)
        assert self.peek(driver, block.address, 132, kind) == b"\x00" * 16 + b"\xfe" * 100 + b"\x00" * 16

    def test_a_stream_keeps_its_order(self, driver: Driver, blocks: Any, stream: int) -> None:
        first, second = blocks(Kind.MANAGED, 64), blocks(Kind.MANAGED, 64)
        for value in range(1, 20):
            driver.fill(first.address, value, first.nbytes, stream)
            driver.copy(second.address, first.address, first.nbytes, stream)
        driver.synchronize(stream, 0)
        assert self.peek(driver, second.address, second.nbytes, Kind.MANAGED) == bytes([19]) * second.nbytes

    def test_an_event_joins_streams(self, driver: Driver, blocks: Any, stream: int) -> None:
        other = driver.create_stream(0)
        block, target = blocks(Kind.DEVICE, 256), blocks(Kind.DEVICE, 256)
        for value in (1, 2, 3):
            driver.fill(block.address, value, block.nbytes, stream)
        driver.wait(other, driver.record(stream, 0))
        driver.copy(target.address, block.address, block.nbytes, other)
        done = driver.record(other, 0)
        done.wait()
        assert done.done()
        assert self.peek(driver, target.address, target.nbytes, Kind.DEVICE) == bytes([3]) * target.nbytes
        driver.destroy_stream(other, 0)

    def test_timed_events_give_seconds(self, driver: Driver, blocks: Any, stream: int) -> None:
        block = blocks(Kind.DEVICE)
        start = driver.record(stream, 0, timed=True)
        driver.fill(block.address, 1, block.nbytes, stream)
        end = driver.record(stream, 0, timed=True)
        end.wait()
        assert 0 <= driver.elapsed(start, end) < 10

    def test_synchronize_without_a_stream_waits_for_the_device(self, driver: Driver, blocks: Any, stream: int) -> None:
        block = blocks(Kind.MANAGED, 256)
        driver.fill(block.address, 9, block.nbytes, stream)
        event = driver.record(stream, 0)
        driver.synchronize()
        assert event.done()
        assert self.peek(driver, block.address, block.nbytes, Kind.MANAGED) == b"\x09" * block.nbytes

    def test_use_stream_is_the_thread_s_and_is_undone(self, driver: Driver, stream: int) -> None:
        before, elsewhere = driver.current_stream(), []
        with pytest.raises(KeyError), driver.use_stream(stream, 0):
            assert driver.current_stream() == driver.current_stream(0) == stream
            with driver.use_stream(before, 0):
                assert driver.current_stream() == before
            assert driver.current_stream() == stream
            thread = threading.Thread(target=lambda: elsewhere.append(driver.current_stream()))
            thread.start()
            thread.join(60)
            raise KeyError
        assert driver.current_stream() == before and elsewhere == [before]

    def test_streams_come_and_go(self, driver: Driver, blocks: Any) -> None:
        block = blocks(Kind.MANAGED)
        for value in range(50):
            handle = driver.create_stream(0)
            driver.fill(block.address, value, block.nbytes, handle)
            driver.synchronize(handle, 0)
            driver.destroy_stream(handle, 0)
        assert self.peek(driver, block.address, 4, Kind.MANAGED) == bytes([49] * 4)

    # Hints

    @pytest.mark.parametrize("place", [Device(0), HOST])
    def test_a_prefetch_is_asked_or_says_that_it_was_not(
        self, driver: Driver, blocks: Any, stream: int, place: Any
    ) -> None:
        block = blocks(Kind.MANAGED)
        data = bytes(range(256)) * (block.nbytes // 256)
        self.poke(driver, block.address, data, Kind.MANAGED)
        outcome = driver.prefetch(block.address, block.nbytes, place, stream)
        driver.synchronize(stream, 0)
        able = driver.device_count() > 0 and driver.traits(0).prefetch
        assert outcome is (Outcome.ASKED if able else Outcome.UNSUPPORTED)
        if able and driver.traits(0).readable_ranges:
            said = driver.read_range(block.address, block.nbytes, Attribute.LAST_PREFETCH_LOCATION)
            assert said == place
        assert self.peek(driver, block.address, block.nbytes, Kind.MANAGED) == data

    def test_renewed_pages_are_there_and_hold_what_is_written_next(
        self, driver: Driver, blocks: Any, stream: int
    ) -> None:
        block = blocks(Kind.MANAGED)
        able = driver.device_count() > 0 and driver.traits(0).renew
        for place in (Device(0), HOST):
            outcome = driver.renew(block.address, block.nbytes, place, stream)
            assert outcome is (Outcome.ASKED if able else Outcome.UNSUPPORTED)
            driver.synchronize(stream)
        self.poke(driver, block.address, b"x" * block.nbytes, Kind.MANAGED)
        assert self.peek(driver, block.address, block.nbytes, Kind.MANAGED) == b"x" * block.nbytes

    def test_the_host_s_share_is_a_share_or_unknown(self, driver: Driver, blocks: Any, stream: int) -> None:
        block = blocks(Kind.MANAGED)
        share = driver.host_share(block.address, block.nbytes)
        assert share is None or 0 <= share <= 1
        if share is None or driver.device_count() == 0 or not driver.traits(0).prefetch:
            return
        driver.prefetch(block.address, block.nbytes, HOST, stream)
        driver.synchronize(stream)
        ctypes.memset(block.address, 1, block.nbytes)
        driver.prefetch(block.address, block.nbytes // 2, Device(0), stream)
        driver.synchronize(stream)
        assert driver.host_share(block.address, block.nbytes // 2) == 0

    def test_a_kernel_traverses_any_memory_that_the_device_reaches(
        self, driver: Driver, blocks: Any, stream: int
    ) -> None:
        out = blocks(Kind.DEVICE if driver.device_count() else Kind.HOST)
        for kind in [kind for kind in self.kinds if kind is not Kind.HOST or not driver.device_count()]:
            block = blocks(kind)
            self.poke(driver, block.address, (5).to_bytes(4, "little") * (block.nbytes // 4), kind)
            driver.traverse(block.address, out.address, block.nbytes, stream, 0)
            driver.synchronize(stream)
            found = self.peek(driver, out.address, 8, out.kind)
            assert found == (6).to_bytes(4, "little") * 2

    @pytest.mark.parametrize("kind", [Kind.DEVICE, Kind.PINNED, Kind.HOST])
    def test_hints_on_memory_that_does_not_migrate_are_no_ops(
        self, driver: Driver, blocks: Any, stream: int, kind: Kind
    ) -> None:
        block = blocks(kind)
        assert driver.prefetch(block.address, block.nbytes, Device(0), stream) is Outcome.UNSUPPORTED
        assert driver.advise(block.address, block.nbytes, Advice.READ_MOSTLY, HOST, True) is Outcome.UNSUPPORTED

    def test_a_range_past_its_allocation_is_refused(self, driver: Driver, blocks: Any, stream: int) -> None:
        if driver.device_count() == 0 or not driver.traits(0).prefetch:
            pytest.skip("hints are no-ops here")
        block = blocks(Kind.MANAGED)
        with pytest.raises(DriverError, match="past|within"):
            driver.prefetch(block.address + 1, block.nbytes, Device(0), stream)
        with pytest.raises(DriverError, match="past|within"):
            driver.advise(block.address, block.nbytes + 1, Advice.READ_MOSTLY, HOST, True)

    @pytest.mark.parametrize("place", [Device(0), HOST])
    @pytest.mark.parametrize("advice", list(Advice))
    def test_advice_is_set_read_back_and_unset(self, driver: Driver, blocks: Any, advice: Advice, place: Any) -> None:
        block = blocks(Kind.MANAGED)
        page = driver.page_size
        able = self.takes(driver, advice, place)
        expected = Outcome.ASKED if able else Outcome.UNSUPPORTED
        assert driver.advise(block.address + page, page, advice, place, True) is expected
        if able and advice is not Advice.COARSE_GRAIN and driver.traits(0).readable_ranges:
            attribute = Attribute[advice.name]
            none, on = {
                Advice.READ_MOSTLY: (False, True),
                Advice.PREFERRED_LOCATION: (False, place),
                Advice.ACCESSED_BY: ((), (place,)),
            }[advice]
            assert driver.read_range(block.address + page, page, attribute) == on
            assert driver.read_range(block.address, page, attribute) == none  # a neighbour is never touched
            assert driver.read_range(block.address + 2 * page, page, attribute) == none
            assert driver.advise(block.address + page, page, advice, place, False) is expected
            assert driver.read_range(block.address + page, page, attribute) == none
        else:
            assert driver.advise(block.address + page, page, advice, place, False) is expected
