"""What a pipeline promises whatever its transport. A test file names one in a subclass, and puts a driver in place."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import umarray as um
from umarray import events
from umarray.drivers import get_driver
from umarray.errors import ClosedError, PipelineError

SPEC = {"x": um.Spec((4, 6), "int32"), "more": [um.Spec(4, "uint8"), ("name", um.Spec((2, 0), "float32"))]}


class Boom(Exception):
    """What a stage of a test raises."""


def stamp(item: int, slot: Any) -> str:
    """A prep that fills the whole slot with the item's number."""
    slot["x"][...] = item
    slot["more"][0][...] = item % 256
    return f"item {item}"


def host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else np.array(array)


def pipeline_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("umarray-pipeline-")]


def failing(items: list[int], at: int) -> Iterator[int]:
    for item in items:
        if item == at:
            raise Boom(at)
        yield item


class TransportContract:
    """Behaviour that every transport shares."""

    transport: str
    travels = True
    """Batches are queued on a stream to the device."""
    moves = True
    """And bytes are asked to move there."""

    @pytest.fixture(autouse=True)
    def _nothing_kept(self, driver: Any) -> Iterator[None]:
        """Every slot of a test's pipelines is given back, and every thread has ended."""
        self.live: dict[int, int] = {}
        self.allocations = 0
        changed = self._changed = threading.Condition()

        def note(record: events.Record) -> None:
            with changed:
                if isinstance(record, events.Allocated):
                    self.live[record.address] = record.nbytes
                    self.allocations += 1
                elif isinstance(record, events.Freed):
                    self.live.pop(record.address, None)
                changed.notify_all()

        stop = events.listen(note)
        try:
            yield
            self.all_released()
        finally:
            stop()

    def all_released(self) -> None:
        assert pipeline_threads() == []
        if self.live:
            gc.collect()
        with self._changed:
            assert self._changed.wait_for(lambda: not self.live, 10), self.live

    def pipeline(self, source: Any, *args: Any, **settings: Any) -> um.Pipeline:
        return um.Pipeline(source, *args, transport=self.transport, **settings)

    # Order and contents

    @pytest.mark.parametrize("workers", [None, 0, 1, 3])
    @pytest.mark.parametrize("slots", [2, 3, 5])
    def test_batches_come_in_order_with_what_prep_wrote(self, slots: int, workers: int) -> None:
        def compute(batch: Any) -> tuple[Any, ...]:
            assert batch["more"][1][1].shape == (2, 0) and batch["more"][1][0] == "name"
            return batch.index, batch.length, batch.meta, batch["x"] + 0, batch["more"][0] + 0

        with self.pipeline(range(20), stamp, compute, like=SPEC, slots=slots, workers=workers) as p:
            results = list(p)
        assert [result[:3] for result in results] == [(i, 4, f"item {i}") for i in range(20)]
        for item, (_, _, _, x, y) in enumerate(results):
            assert (host(x) == item).all() and x.shape == (4, 6)
            assert (host(y) == item).all() and y.dtype == np.uint8

    def test_without_prep_items_are_copied_in_and_like_is_the_first_item(self) -> None:
        items = [(np.full((3, 2), i, "float32"), {"label": i}) for i in range(6)]
        with self.pipeline(items, compute=lambda batch: (batch[0].sum(), batch[1]["label"])) as p:
            assert [(float(total), label) for total, label in p] == [(6.0 * i, i) for i in range(6)]

    def test_without_compute_a_batch_is_valid_until_the_next(self) -> None:
        seen = []
        with self.pipeline(range(5), stamp, like=SPEC) as p:
            for batch in p:
                assert (host(batch["x"]) == batch.index).all()
                seen.append(batch)
        assert [batch.index for batch in seen] == list(range(5))
        for batch in seen:
            with pytest.raises(ClosedError, match=f"batch {batch.index} was valid until the next"):
                batch["x"]

    def test_short_batches_are_cut(self) -> None:
        def prep(item: int, slot: Any) -> None:
            slot.length = item
            slot["x"] = np.arange(item * 6).reshape(item, 6)

        with self.pipeline([4, 2, 0, 1, 4], prep, lambda b: (b.length, host(b["x"])), like=SPEC) as p:
            results = list(p)
        assert [length for length, _ in results] == [4, 2, 0, 1, 4]
        for length, x in results:
            np.testing.assert_array_equal(x, np.arange(length * 6).reshape(length, 6))

    def test_the_last_chunk_of_an_array_may_be_short(self) -> None:
        rows = np.arange(22, dtype="int64").reshape(11, 2)
        with self.pipeline(um.chunks(rows, nbytes=64), compute=lambda batch: host(batch.data)) as p:
            np.testing.assert_array_equal(np.concatenate(list(p)), rows)

    def test_a_single_array_is_a_structure_too(self) -> None:
        def prep(item: int, slot: Any) -> None:
            slot[:] = item

        with self.pipeline([1, 2], prep, lambda b: int(b.data.sum()), like=um.Spec(3, int)) as p:
            assert list(p) == [3, 6]

    # Iterating again

    def test_iterating_again_uses_the_same_slots(self) -> None:
        with self.pipeline(range(4), stamp, lambda b: int(b["x"].sum()), like=SPEC) as p:
            first, made = list(p), self.allocations
            assert list(p) == first == [24 * i for i in range(4)]
            assert self.allocations == made > 0

    def test_iterating_anew_ends_the_iteration_before(self) -> None:
        with self.pipeline(range(4), stamp, lambda b: b.index, like=SPEC) as p:
            before = iter(p)
            assert next(before) == 0
            after = iter(p)
            assert next(after) == 0
            with pytest.raises(ClosedError, match="iterated anew before its end"):  # and not the end of the source
                next(before)
            assert list(before) == []
            assert list(after) == [1, 2, 3] == list(p)[1:]

    def test_closing_within_the_loop_is_not_the_end_of_the_source(self) -> None:
        with self.pipeline(range(9), stamp, lambda b: b.index, like=SPEC) as p:
            results = iter(p)
            assert next(results) == 0
            p.close()
            with pytest.raises(ClosedError, match="closed"):
                next(results)

    def test_an_iterator_is_used_up_after_one_iteration(self) -> None:
        source = iter(range(3))
        with self.pipeline(source, stamp, lambda b: b.index, like=SPEC) as p:
            assert list(p) == [0, 1, 2]
            with pytest.raises(PipelineError, match="range_iterator.*used by the iteration before"):
                iter(p)

    @pytest.mark.parametrize("prepared", [True, False])
    def test_an_empty_source_is_an_error_that_names_it(self, prepared: bool) -> None:
        settings: dict[str, Any] = {"prep": stamp, "like": SPEC} if prepared else {}
        with self.pipeline((), **settings) as p, pytest.raises(ValueError, match=r"the source \(\) is empty"):
            list(p)

    # Results that share memory

    def test_a_result_that_shares_a_slot_s_memory_holds_the_slot(self) -> None:
        with self.pipeline(range(12), stamp, lambda b: b["x"][1:3], like=SPEC) as p:
            kept: list[Any] = []
            for item, view in enumerate(p):
                assert (host(view) == item).all()
                kept = [*kept[-1:], view]
                assert (host(kept[0]) == max(item - 1, 0)).all()
        assert [host(view)[0, 0] for view in kept] == [10, 11]  # after the end too

    def test_all_slots_held_is_an_error_with_the_remedy(self) -> None:
        kept = []
        with self.pipeline(range(9), stamp, lambda b: b["x"], like=SPEC, slots=3) as p:
            with pytest.raises(
                PipelineError, match=r"all 3 slots are held .* \(of batches 0, 1, 2\).*out=umarray.HOST"
            ):
                kept.extend(p)
            assert [int(host(view).max()) for view in kept] == [0, 1, 2]
            kept.clear()
            assert len([int(host(view).max()) for view in p]) == 9

    @pytest.mark.parametrize("slots", [2, 3])
    def test_as_many_results_as_slots_may_be_kept(self, slots: int) -> None:
        with self.pipeline(range(slots), stamp, lambda b: b["x"], like=SPEC, slots=slots, workers=0) as p:
            assert [int(host(view).max()) for view in list(p)] == list(range(slots))

    def test_garbage_that_holds_slots_is_collected_first(self) -> None:
        def compute(batch: Any) -> int:
            cycle: list[Any] = [batch["x"]]
            cycle.append(cycle)
            return int(batch.index)

        gc.disable()
        try:
            with self.pipeline(range(9), stamp, compute, like=SPEC, slots=2) as p:
                assert list(p) == list(range(9))
        finally:
            gc.enable()

    def test_a_result_may_outlive_its_pipeline(self) -> None:
        with self.pipeline(range(3), stamp, lambda b: b["x"], like=SPEC) as p:
            for view in p:  # noqa: B007
                break
        del p
        gc.collect()
        assert (host(view) == 0).all() and len(self.live) == 1

    def test_what_prep_keeps_outlives_the_pipeline(self) -> None:
        kept = []
        with self.pipeline([5], lambda item, slot: kept.append(slot["x"]), lambda b: b.index, like=SPEC, slots=2) as p:
            list(p)
        del p
        gc.collect()
        kept[0][...] = 7
        assert (kept[0] == 7).all()

    # Results on the host

    def test_out_host_yields_numpy_arrays_of_their_own(self) -> None:
        xp = get_driver().xp
        buffer = xp.zeros((4, 6), "int32")

        def compute(batch: Any) -> Any:
            buffer[...] = batch["x"] * 2
            return {
                "all": buffer,
                "corner": buffer[1:3, ::2],
                "none": buffer[:0],
                "index": batch.index,
                "h": np.ones(2),
            }

        with self.pipeline(range(7), stamp, compute, like=SPEC, out=um.HOST) as p:
            results = list(p)
        for item, result in enumerate(results):
            assert all(type(result[key]) is np.ndarray for key in ("all", "corner", "none", "h"))
            assert (result["all"] == item * 2).all() and (result["corner"] == item * 2).all()
            assert result["corner"].shape == (2, 3) and result["none"].shape == (0, 6) and result["index"] == item

    def test_out_host_takes_views_of_slots_and_growing_results(self) -> None:
        def compute(batch: Any) -> Any:
            return get_driver().xp.repeat(batch["x"], batch.index + 1, axis=0) if batch.index else batch["x"][::-1]

        with self.pipeline(range(6), stamp, compute, like=SPEC, out="host", slots=2) as p:
            for item, result in enumerate(p):
                assert result.shape == (4 * (item + 1), 6) and (result == item).all()

    # Errors

    @pytest.mark.parametrize("workers", [0, 1, 3])
    @pytest.mark.parametrize("at", [0, 1, 5])
    @pytest.mark.parametrize("stage", ["source", "prep", "compute", "body"])
    def test_the_error_of_a_stage_comes_out_once_and_all_is_released(self, stage: str, at: int, workers: int) -> None:
        def fail_at(name: str, item: int) -> None:
            if stage == name and item == at:
                raise Boom(at)

        def prep(item: int, slot: Any) -> None:
            fail_at("prep", item)
            stamp(item, slot)

        def compute(batch: Any) -> int:
            fail_at("compute", batch.index)
            return int(batch["x"].max())

        seen: list[int] = []
        items = list(range(9))
        source = failing(items, at) if stage == "source" else items
        settings = {"like": SPEC, "workers": workers}
        with pytest.raises(Boom) as caught, self.pipeline(source, prep, compute, **settings) as p:
            results = iter(p)
            for result in results:
                seen.append(result)
                fail_at("body", result)
        assert caught.value.args == (at,) and seen == items[: len(seen)]
        assert len(seen) == at + 1 if stage == "body" else len(seen) <= at
        raised_in = {entry.name for entry in caught.traceback}
        assert ("failing" if stage == "source" else "fail_at") in raised_in
        if stage != "body":
            assert list(results) == []

    def test_stop_iteration_in_a_stage_does_not_end_the_loop_quietly(self) -> None:
        def stop(*_: Any) -> None:
            raise StopIteration

        for functions in ((stop, None), (stamp, stop)):
            with (
                self.pipeline(range(3), *functions, like=SPEC) as p,
                pytest.raises(PipelineError, match="StopIteration"),
            ):
                list(p)

    def test_leaving_the_loop_ends_the_threads(self) -> None:
        with self.pipeline(range(100), stamp, lambda b: b.index, like=SPEC, workers=2) as p:
            for index in p:
                if index == 2:
                    break
            threads = [thread for thread in threading.enumerate() if thread.name.startswith("umarray-pipeline-prep")]
            for thread in threads:
                thread.join(10)
                assert not thread.is_alive()
        assert pipeline_threads() == [] and self.live == {}

    def test_closed_means_closed(self) -> None:
        with self.pipeline(range(3), stamp, lambda b: b.index, like=SPEC) as p:
            results = iter(p)
            assert next(results) == 0
        with pytest.raises(ClosedError, match="closed"):
            next(results)
        p.close()
        for use in (lambda: iter(p), lambda: p.ideal(0), p.__enter__):
            with pytest.raises(ClosedError):
                use()
        assert p.report().steps == 1

    def test_it_is_collected_with_its_items_and_functions(self) -> None:
        class Item:
            pass

        item = Item()
        gone = weakref.ref(item)
        with self.pipeline([item], lambda item, slot: None, lambda b: b.index, like=SPEC) as p:
            list(p)
        del p, item
        gc.collect()
        assert gone() is None

    # Reports

    def test_the_report_counts_steps_stages_and_bytes(self) -> None:
        with self.pipeline(range(5), stamp, lambda b: b.index, like=SPEC) as p:
            assert p.report().steps == 0 and p.report().overlap_efficiency == 0.0
            list(p), list(p)
            report = p.report()
        assert report == p.report()
        assert report.steps == 10 and report.transport == self.transport and report.step > 0
        assert all(report.stages[stage] >= 0 for stage in ("source", "prep", "transfer", "compute"))
        assert (report.bytes_moved > 0) == self.moves
        assert report.as_dict()["stages"]["prep"] > 0 and self.transport in str(report)
        with pytest.raises(AttributeError):
            report.steps = 3  # type: ignore[misc]

    def test_the_ideal_is_each_stage_alone(self) -> None:
        with self.pipeline(range(5), stamp, lambda b: b["x"] + 1, like=SPEC, out=um.HOST) as p:
            alone = p.ideal(3)
            assert {"prep", "compute", "out"} <= alone.keys() <= {"prep", "transfer", "compute", "out", "back"}
            assert ("transfer" in alone) == self.travels and min(alone.values()) > 0
            results = iter(p)
            next(results)
            with pytest.raises(PipelineError, match="before or after an iteration"):
                p.ideal(3)
            assert len(list(results)) == 4
            report = p.report()
        assert report.ideal_measured and report.steps == 5
        assert report.ideal == pytest.approx(max(max(alone.values()), report.stages["source"] + alone["prep"]))

    def test_stages_are_told_to_listeners(self) -> None:
        told: list[events.StageRan] = []
        stop = events.listen(lambda record: told.append(record) if isinstance(record, events.StageRan) else None)
        with self.pipeline(range(3), stamp, lambda b: b.index, like=SPEC) as p:
            list(p)
        stop()
        stages = {"source", "prep", "compute"} | ({"transfer"} if self.travels else set())
        for stage in stages:
            assert [record.index for record in told if record.stage == stage] == [0, 1, 2]
        assert all(record.start <= record.end for record in told)
