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
from umarray.pipeline.engine import Engine
from umarray.pipeline.layout import Layout
from umarray.pipeline.outbox import Outbox
from umarray.pipeline.progress import progress_bar
from umarray.pipeline.report import Clock, Report, slowest
from umarray.pipeline.results import Results
from umarray.pipeline.run import Run
from umarray.places import HOST, as_place

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
    slots : int
        How many batches may be under way; 2 at least.
    workers : int
        Threads that prepare. Results keep the source's order.
    out : HOST, optional
        Yield results as NumPy arrays of their own, copied while the next batch computes: a result comes out after the
        compute of the batch after it was queued.
    transport : str
        "auto", or by name: "host", "staged", "managed".
    progress : bool
        Show a tqdm bar, where tqdm is installed; ``UMARRAY_PROGRESS=0`` switches it off.

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
        slots: int = 3,
        workers: int = 1,
        out: Any = None,
        transport: str = "auto",
        progress: bool = False,
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
        self._slots = check_count("slots", slots, 2, "one to prepare while another computes")
        self._workers = check_count("workers", workers, 1, "one thread that prepares")
        if out is not None and as_place(out) is not HOST:
            raise ValueError(f"out must be umarray.HOST or None, not {out!r}")
        if out is not None and compute is None:
            raise ValueError(
                "out=umarray.HOST copies what compute returns: give compute, or use umarray.asnumpy on a batch"
            )
        self._out = out is not None
        self._driver = get_driver()
        self.transport, self._reason = choose.choose(transport, self._driver)
        self._source = source
        self._prep = prep
        self._compute = compute
        self._like = like
        self._progress = bool(progress)
        self._clock = Clock(self._driver)
        self._engine: Engine | None = None
        self._outbox: Outbox | None = None
        self._run: Run | None = None
        self._state = "new"
        self._used_up = False
        self._bytes_moved = 0  # by an engine that is gone
        self._bytes_alone = 0  # by ideal()
        self._slot_bytes = 0

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
            try:
                if self._outbox is not None:
                    self._outbox.close()
            finally:
                self._bytes_moved = self._moved()
                engine, self._engine = self._engine, None
                if engine is not None:
                    engine.close()

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
        if self._engine is None and self._like is None:
            first = next(items, _NOTHING)
            if first is _NOTHING:
                raise self._empty()
            self._engine = self._open(first)
            items = chain([first], items)
        elif self._engine is None:
            self._engine = self._open(self._like)
        self._run = Run(self._engine, items, self._compute, self._workers, self._empty)
        self._run.start()
        return Results(self._run, self._outbox, progress_bar(self._progress, self._source))

    def _empty(self) -> ValueError:
        return ValueError(f"the source {self._source!r} is empty: it gave no item")

    def _check_open(self) -> None:
        if self._state == "closed":
            raise ClosedError("this pipeline is closed: make a new one")
        if self._state == "new":
            raise PipelineError("enter the pipeline first: with umarray.Pipeline(...) as p: for result in p: ...")

    def _open(self, like: Any) -> Engine:
        driver, device = self._driver, self._driver.current_device()
        engine = Engine(driver, device, like, self._slots, self.transport, self._prep, self._clock)
        if self._out:
            try:
                self._outbox = Outbox(driver, device, self._clock)
            except BaseException:
                engine.close()
                raise
        self._slot_bytes = engine.slot_bytes()
        return engine

    def report(self) -> Report:
        """What has happened so far, all iterations together.

        Notes
        -----
        Waits for the batches that were handed out, on the device. Works on a closed pipeline too.
        """
        self._clock.wait()
        clock = self._clock
        stages, step = clock.stages(), clock.step()
        ideal = slowest(stages if clock.alone is None else {**clock.alone, "source": stages["source"]}, self._workers)
        return Report(
            steps=clock.steps,
            step=step,
            stages=stages,
            ideal=ideal,
            ideal_measured=clock.alone is not None,
            overlap_efficiency=ideal / step if step else 0.0,
            transport=self.transport,
            reason=self._reason,
            bytes_moved=self._moved() - self._bytes_alone,
            slot_bytes=self._slot_bytes,
            slots=self._slots,
            workers=self._workers,
        )

    def _moved(self) -> int:
        if self._engine is None:
            return self._bytes_moved
        out = 0 if self._outbox is None else self._outbox.bytes_moved
        return self._engine.transport.bytes_moved + out

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
        if self._engine is None:
            self._engine = self._open(item if self._like is None else self._like)
        self._clock.wait()
        moved = self._moved()
        rounds = [alone(self._engine, self._outbox, self._compute, item) for _ in range(1 + _REPEATS)][1:]
        self._clock.alone = {stage: statistics.median(times[stage] for times in rounds) for stage in rounds[0]}
        self._bytes_alone += self._moved() - moved
        return dict(self._clock.alone)
