"""Pipeline: the CPU prepares batch n+2 while batch n+1 travels and batch n computes."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from types import TracebackType
from typing import Any, final

from umarray.drivers import get_driver
from umarray.errors import ClosedError, PipelineError
from umarray.pipeline import choose
from umarray.pipeline.alone import alone
from umarray.pipeline.arguments import check_count, check_function
from umarray.pipeline.layout import Layout
from umarray.pipeline.pace import Pace
from umarray.pipeline.plan import SLOTS, Planner
from umarray.pipeline.report import Clock, Report, slowest
from umarray.pipeline.results import Results
from umarray.pipeline.rig import Rig
from umarray.pipeline.run import Run
from umarray.places import HOST, as_place
from umarray.progress import bar, length

_REPEATS = 3
_NOTHING = object()


@final
class Pipeline:
    """Batches prepared on the CPU straight into slots, moved on their own stream, and computed, all at the same time.

    Parameters
    ----------
    source : iterable
        Gives the items; read by a preparation thread, one at a time. Iterating the pipeline again asks it again.
    prep : callable, optional
        ``prep(item, slot)`` writes the slot's NumPy arrays in place, sets ``slot.length`` for a short batch, and
        returns what becomes ``batch.meta``. Usually a numba kernel that releases the GIL. Without it items are nests
        of NumPy arrays and are copied in.
    compute : callable, optional
        ``compute(batch)`` works on arrays of `umarray.xp`; what it returns is what iteration yields. Without it
        iteration yields each batch, which is valid until the next.
    like : nest of arrays or Spec, optional
        What a slot holds. Needed with `prep`; without it the first item is taken.
    slots : int, optional
        How many batches may be under way; 2 at least. None: found, from 3 on, iterations with one more being compared.
    workers : int, optional
        Threads that prepare; 0: the thread that iterates does, between the batches. None: found, 0 or 1, by how long
        steps take, and it may change while running; an iterator is read by a thread until steps have proved short.
        Results keep the source's order. With 0 small batches of a source that has a length travel in groups.
    out : HOST, optional
        Yield results as NumPy arrays of their own, copied while the next batch computes: a result comes out after the
        compute of the batch after it was queued.
    transport : str
        "auto": the one that costs least by `umarray.calibrate`, or by stated defaults, and in a later iteration
        another one if steps disagree. Or by name: "staged" (pinned memory and a copy), "managed" (pages migrate),
        "bus" (the device reads host memory), "direct" (it shares the host's), "host" (there is none).
    progress : bool, optional
        Show a tqdm bar over the batches, where tqdm is installed and standard error is a terminal or a notebook's.
        None: as ``UMARRAY_PROGRESS`` says, and not where it says nothing; ``UMARRAY_PROGRESS=0`` shows none ever.

    Raises
    ------
    TypeError, ValueError
        An argument makes no sense; the text quotes it.
    NotSupported
        The transport cannot work in this process.

    Notes
    -----
    `compute` and the loop's body run in the caller's thread, on its current stream and allocator; work that they put on
    other streams must be joined to the current one before the next batch is asked for. An array that shares a slot's
    memory keeps the slot from being written for as long as it lives, and where all slots are kept so, the next step
    raises `PipelineError`.

    The first error of any stage ends the iteration and comes out of it with its own traceback; batches under way are
    dropped. Leaving the loop early ends its threads; leaving the `with` block gives slots and streams back too.

    Examples
    --------
    >>> import numpy as np, umarray as um
    >>> def prep(item, slot):
    ...     slot["x"][...] = item
    ...     return f"item {item}"
    >>> def compute(batch):
    ...     return float((batch["x"].astype("float32") * 2).sum())
    >>> with um.Pipeline([1, 2, 3], prep, compute, like={"x": um.Spec((4, 2), "uint8")}) as p:
    ...     print(list(p))
    [16.0, 32.0, 48.0]
    """

    def __init__(
        self,
        source: Iterable[Any],
        prep: Callable[[Any, Any], Any] | None = None,
        compute: Callable[[Any], Any] | None = None,
        like: Any = None,
        slots: int | None = None,
        workers: int | None = None,
        out: Any = None,
        transport: str = "auto",
        progress: bool | None = None,
    ) -> None:
        if not hasattr(type(source), "__iter__") and not hasattr(type(source), "__getitem__"):
            raise TypeError(f"source must be iterable, not {source!r}")
        check_function("prep", prep)
        check_function("compute", compute)
        if prep is not None and like is None:
            raise ValueError(
                "prep needs like=: what a slot holds, such as like={'x': umarray.Spec((64, 784), 'uint8')}"
            )
        if like is not None:
            Layout(like)
        if slots is not None:
            slots = check_count("slots", slots, 2, "one to prepare while another computes")
        if workers is not None:
            workers = check_count("workers", workers, 0, "0: the thread that iterates prepares")
        if out is not None and as_place(out) is not HOST:
            raise ValueError(f"out must be umarray.HOST or None, not {out!r}")
        if out is not None and compute is None:
            raise ValueError(
                "out=umarray.HOST copies what compute returns: give compute, or use umarray.asnumpy on a batch"
            )
        self._driver = get_driver()
        planner = Planner(self._driver, choose.check(transport, self._driver), slots)
        waits = not (hasattr(type(source), "__len__") and hasattr(type(source), "__getitem__"))
        self._pace = Pace(workers, slots or SLOTS, live=waits)
        self._workers = workers
        self._source = source
        self._prep = prep
        self._compute = compute
        self._like = like
        self._progress = progress if progress is None else bool(progress)
        self._clock = Clock(self._driver)
        self._grouped = not waits
        self._rig = Rig(self._driver, planner, prep, self._clock, out=out is not None, groups=not (waits or workers))
        self._run: Run | None = None
        self._state = "new"
        self._used_up = False
        self._bytes_alone = 0  # moved by ideal()

    @property
    def transport(self) -> str:
        """The transport's name; before the first iteration what was asked for, or what "auto" would take here."""
        return self._rig.plan(self._like).transport

    def __enter__(self) -> Pipeline:
        if self._state == "closed":
            raise ClosedError("this pipeline is closed: make a new one")
        if self._state == "open":
            raise PipelineError("this pipeline is entered already")
        self._state = "open"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception:
            if error is None:  # never in place of what is in flight
                raise

    def close(self) -> None:
        """End the threads, wait for the device, and give slots and streams back. Does nothing the second time.

        Notes
        -----
        A slot whose memory an array still shares is given back when the last such array dies.
        """
        if self._run is not None:
            self._run.finish()
        self._state, self._run = "closed", None
        try:
            self._clock.finish()
        finally:
            self._rig.close()

    def __iter__(self) -> Iterator[Any]:
        self._check_open()
        if self._run is not None:
            self._run.finish()
            self._run = None
            self._clock.finish()
            self._check_open()  # another thread may have closed it
        if self._used_up:
            raise PipelineError(
                f"the source {self._source!r} is an iterator and was used by the iteration before: give a list, or"
                " another object that can be iterated again"
            )
        items = iter(self._source)
        self._used_up = items is self._source
        rig = self._rig
        rig.replan(self._pace.threads)
        if rig.engine is None:
            like = self._like
            if like is None:
                like = next(items, _NOTHING)
                if like is _NOTHING:
                    raise self._empty()
                items = chain([like], items)
            rig.open(like)
        assert rig.engine is not None
        threads = 1 if self._workers is None else self._workers
        self._run = Run(rig.engine, items, self._compute, threads, self._empty, self._pace, grouped=self._grouped)
        self._run.start()
        shown = bar(length(self._source), "pipeline", unit="batch", asked=self._progress, default=False)
        return Results(self._run, rig.outbox, shown)

    def _empty(self) -> ValueError:
        return ValueError(f"the source {self._source!r} is empty: it gave no item")

    def _check_open(self) -> None:
        if self._state == "closed":
            raise ClosedError("this pipeline is closed: make a new one")
        if self._state == "new":
            raise PipelineError("enter the pipeline first: with umarray.Pipeline(...) as p: for result in p: ...")

    def report(self) -> Report:
        """What has happened so far, all iterations together.

        Notes
        -----
        Waits for the batches that were handed out, on the device. Works on a closed pipeline too.
        """
        self._clock.wait()
        clock = self._clock
        stages, step = clock.stages(), clock.step()
        plan, workers = self._rig.plan(self._like), (self._workers or 1) if self._pace.threads else 0
        ideal = slowest(stages if clock.alone is None else {**clock.alone, "source": stages["source"]}, max(workers, 1))
        return Report(
            steps=clock.steps,
            step=step,
            stages=stages,
            ideal=ideal,
            ideal_measured=clock.alone is not None,
            overlap_efficiency=ideal / step if step else 0.0,
            transport=plan.transport,
            reason=plan.reason,
            bytes_moved=self._rig.bytes_moved() - self._bytes_alone,
            slot_bytes=self._rig.slot_bytes,
            slots=plan.slots,
            workers=workers,
        )

    def ideal(self, item: Any) -> dict[str, float]:
        """Seconds of each stage on this item, run alone: nothing overlaps. `report` then measures against these.

        Parameters
        ----------
        item : Any
            As the source gives them.

        Raises
        ------
        PipelineError
            The pipeline is being iterated.

        Notes
        -----
        Each stage runs once to warm up and then three times, of which the middle time counts. `compute` runs as often,
        with whatever it changes: ask before the weights matter, or in a pipeline of its own.
        """
        self._check_open()
        if self._run is not None and not self._run.finished:
            if not self._run.left:
                raise PipelineError(
                    "ideal() runs the stages alone: call it before or after an iteration, not within one"
                )
            self._run.finish()
        rig = self._rig
        engine = rig.engine or rig.open(item if self._like is None else self._like)
        self._clock.wait()
        moved = rig.bytes_moved()
        rounds = [alone(engine, rig.outbox, self._compute, item) for _ in range(1 + _REPEATS)][1:]
        self._clock.alone = {stage: statistics.median(times[stage] for times in rounds) for stage in rounds[0]}
        self._bytes_alone += rig.bytes_moved() - moved
        return dict(self._clock.alone)
