"""access: a block in which a program says what its device work reads and writes, and umarray picks what to do."""

from __future__ import annotations

from collections import Counter
from typing import Any

from umarray.calibration import current
from umarray.drivers.base import Advice, Array, Kind
from umarray.html import note, page, table
from umarray.places import HOST, Device, Host, as_place
from umarray.residency.ledger import Topic, Value
from umarray.residency.plan import Choice, Pick, Planner, Uses, all_there, uses_of, within
from umarray.residency.prefetching import Job, room_for, send
from umarray.residency.scope import Scope
from umarray.residency.spans import Span, Spans, arrays_in, layout_of, spans_of
from umarray.residency.state import State
from umarray.residency.streams import current_lanes
from umarray.residency.telling import tell_begin
from umarray.sizes import format_size


class access(Scope):
    """A `with` block whose device work reads and writes the arrays named; umarray makes ready what pays.

    Parameters
    ----------
    reads, writes, updates : array, or dict, list or tuple of them
        What the work of the block reads only; what it writes in full before anything reads it; what it reads and
        writes, or writes in part. An array in two lists counts as updated.
    on : Device, int or cupy.cuda.Device, optional
        The device of the work; the current one at entry by default.

    Attributes
    ----------
    choices : tuple of Choice
        What was picked for which pages, and why; `print` shows it.
    tally : Tally
        What was asked and what became of it.

    Raises
    ------
    TypeError, ValueError
        No array at all, what is no array or device, a read-only array to be written; nothing has happened.
    ClosedError
        Entered a second time.

    Notes
    -----
    A hint, but for one thing: what an array in `writes` held before is lost, so that it need not travel. Work in the
    block belongs on the stream that is current at entry, or on one that was made to wait for it.

    Picked is, for each merged span of pages: nothing where it is there already, by the host's page table and by what
    umarray was told; a prefetch, or faults on demand where that is cheaper by `umarray.calibrate`'s figures; pages
    without their contents, where all of them is overwritten and the runtime can discard; a copy beside another device's
    where both only read; and a mapping over the bus of what does not fit. The last two are advice, taken back on exit
    after waiting for the current stream, since advice is not ordered with it. Nothing else waits, and pages stay where
    the work left them. In `explicit` and `host` mode nothing moves.

    Examples
    --------
    >>> import numpy as np, umarray as um
    >>> x, y = np.ones(1000), np.empty(1000)
    >>> with um.access(reads=[x], writes=[y]) as plan:
    ...     y[...] = x * 2
    >>> plan.tally.skipped  # ordinary memory: nothing can be done for it, and `print(plan)` says so
    2
    """

    _name = "access"

    def __init__(self, *, reads: Any = (), writes: Any = (), updates: Any = (), on: Any = None) -> None:
        place = None if on is None else as_place(on)
        if isinstance(place, Host):
            raise ValueError("access is for work on a device: for work on the host use umarray.host_view")
        self._on = place
        self._reads, self._writes, self._updates = (arrays_in(nest) for nest in (reads, writes, updates))
        for x in (*self._writes, *self._updates):
            if not getattr(getattr(x, "flags", None), "writeable", True):
                raise ValueError(f"a read-only array of shape {x.shape} cannot be in writes= or updates=: give reads=")
        self.choices: tuple[Choice, ...] = ()
        self._plain: tuple[tuple[str, int], ...] = ()
        self._device: int | None = None
        self._state: State | None = None
        self._tokens: list[int] = []
        every = [*self._reads, *self._writes, *self._updates]
        super().__init__((every,) if every else (), [] if place is None else [place], found=every)

    def _tell(self, state: State) -> int:
        return tell_begin(self._name, self._line, self._arrays, place=self._on)

    def _begin(self, state: State, spans: Spans) -> None:
        driver = state.driver
        if spans.skipped:
            self._plain = tuple(Counter(_kind(state, x) for x in self._arrays if layout_of(x).size).items())
        if not driver.device_count():
            return
        device = self._device = driver.current_device() if self._on is None else self._on.id
        pages = spans.outward()
        if pages:
            self._state = state
            self._make_ready(state, spans, pages, device)
        self._reads = self._writes = self._updates = []
        if not self._tokens:
            self._arrays = []  # nothing more to do with them: let them go when their owner does

    def _make_ready(self, state: State, spans: Spans, pages: list[Span], device: int) -> None:
        there = all_there(state, device, pages)
        if there is not None:
            self.choices = (there,)
            return
        if state.driver.traits(device).unified:
            self.choices = (Choice(Pick.NOTHING, tuple(pages), "host and device share one memory"),)
            return
        planner = Planner(state, device, current(device), lambda: self._uses(state), lambda: self._stale(state))
        job = Job(state, spans, Device(device), None, None, True, self.tally, self._arrays, self._serial)
        self.choices = tuple(planner.plan(pages, lambda nbytes: room_for(job, nbytes)))
        picked: dict[Pick, list[Span]] = {pick: [] for pick in Pick}
        for choice in self.choices:
            picked[choice.pick] += choice.spans
        try:
            self._advise(state, spans, picked[Pick.MAP], _over_the_bus(device))
            self._advise(state, spans, picked[Pick.DUPLICATE], [(Topic(Advice.READ_MOSTLY), True)])
            send(job, [*picked[Pick.PREFETCH], *picked[Pick.DUPLICATE]], picked[Pick.RENEW])
        except BaseException:
            self._take_back([])
            raise
        known = state.told
        known.note([*picked[Pick.ON_DEMAND], *picked[Pick.NOTHING]], Device(device))
        if state.driver.device_count() > 1:
            state.readers.enter(self, device, planner.uses.read)

    def _stale(self, state: State) -> bool:
        """Whether the host has a byte that is overwritten, or might."""
        ranges = (layout_of(x).range for x in self._writes)
        return any(state.driver.host_share(start, stop - start) != 0 for start, stop in ranges if start < stop)

    def _uses(self, state: State) -> Uses:
        driver = state.driver
        gapless = [x for x in self._writes if _gapless(x)]
        gapped = [x for x in self._writes if not _gapless(x)]
        reads, writes, updates, rest = (
            spans_of(arrays, driver.find, driver.page_size) for arrays in (self._reads, gapless, self._updates, gapped)
        )
        return uses_of(reads, writes, updates, rest)

    def _advise(self, state: State, spans: Spans, chosen: list[Span], wishes: list[tuple[Topic, Value]]) -> None:
        if not chosen:
            return
        inside = [(span.start, span.stop) for span in spans.inward()]
        ranges = [(one.start, one.stop) for span in chosen for one in within(inside, span)]
        self.tally.bytes_left_out += sum(span.nbytes for span in chosen) - sum(stop - start for start, stop in ranges)
        self._tokens.append(state.ledger.enter(wishes, ranges, self.tally))

    def __exit__(self, kind: Any, error: Any, tb: Any) -> None:
        if self._phase == "open" and self._tokens and error is None and self._state is not None:
            assert self._device is not None
            driver = self._state.driver
            for lane in current_lanes(driver, self._device):
                driver.synchronize(lane.stream, lane.device)
        super().__exit__(kind, error, tb)

    def _end(self, arrays: list[Array]) -> None:
        self._take_back(arrays)

    def _take_back(self, keep: list[Array]) -> None:
        state, tokens = self._state, self._tokens
        self._tokens = []
        if state is not None:
            state.readers.leave(self)
            for token in reversed(tokens):
                state.ledger.leave(token, self.tally, keep=keep)

    def __str__(self) -> str:
        where = "on the host" if self._device is None else f"on Device({self._device})"
        lines = [f"access scope, {self._phase}: {where}"]
        lines += [f"  {choice}" for choice in self.choices]
        lines += [f"  nothing: {count} arrays in {kind} memory, which no hint can move" for kind, count in self._plain]
        return "\n".join(lines if not self.choices else [*lines, f"  {self.tally}"])

    def _repr_html_(self) -> str:
        rows = [(one.pick.value, format_size(one.nbytes), one.why) for one in self.choices]
        rows += [("nothing", f"{count} arrays", f"{kind} memory: no hint can move it") for kind, count in self._plain]
        where = "the host" if self._device is None else f"Device({self._device})"
        return page(f"access on {where}, {self._phase}", table(("picked", "bytes", "why"), rows), note(str(self.tally)))


def _over_the_bus(device: int) -> list[tuple[Topic, Value]]:
    return [(Topic(Advice.PREFERRED_LOCATION), HOST), (Topic(Advice.ACCESSED_BY, Device(device)), True)]


def _gapless(x: Array) -> bool:
    layout = layout_of(x)
    start, stop = layout.range
    return stop - start == layout.nbytes and not layout.overlaps_itself


def _kind(state: State, x: Array) -> str:
    layout = layout_of(x)
    found = state.driver.find(layout.range[0])
    kind = found.kind if found is not None else Kind.HOST if layout.device is None else Kind.DEVICE
    return kind.value
