"""Blocks that say where arrays should live and when they should move: prefetch, advise; and move, at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from umarray.drivers import get_driver
from umarray.drivers.base import Advice, Array, check_place
from umarray.drivers.streams import as_stream
from umarray.places import HOST, Device, Host, Place, as_place
from umarray.residency.callers import calling_line
from umarray.residency.ledger import Topic, Value
from umarray.residency.prefetching import Job, issue, issue_quietly
from umarray.residency.scope import Scope, look_up
from umarray.residency.spans import Spans, arrays_in
from umarray.residency.state import State, state_of
from umarray.residency.tally import Tally
from umarray.residency.telling import tell_begin, tell_end


class prefetch(Scope):
    """A `with` block at whose start arrays are asked to move, ahead of use.

    Parameters
    ----------
    *arrays : array, or dict, list or tuple of them
        CuPy, NumPy or torch arrays, views of any kind. Those not in managed memory are skipped and counted.
    to : Device, HOST, "host", int or cupy.cuda.Device, optional
        Where to; the current device at entry by default.
    stream : "own", CuPy or torch stream, or int
        The stream on which pages move: "own" is one of umarray's, so that they move beside running work.
    back : place, optional
        Where to prefetch on exit, after the work queued in the block; without it pages stay where they are.
    wait : bool
        The current stream waits for the pages, so a kernel after entry finds them there. With False nothing waits.

    Raises
    ------
    TypeError, ValueError
        What is no array, place or stream, or a device that is not there; nothing has happened.
    ClosedError
        Entered a second time.

    Notes
    -----
    A hint: it moves no data in `host` and `explicit` mode and changes no result in any. Neighbouring arrays are one
    call. Whole pages move. What the place has no room for is left, and counted as clipped. The host never waits for
    pages, except in the call itself where the runtime keeps it; nothing waits for those that go back on exit. Use one
    scope in one thread; different scopes in any.

    Examples
    --------
    >>> import numpy as np, umarray as um
    >>> x = np.ones(1000)
    >>> with um.prefetch(x) as scope:
    ...     total = x.sum()
    >>> scope.tally.skipped  # ordinary memory: no hint can act on it
    1
    """

    _name = "prefetch"

    def __init__(self, *arrays: Any, to: Any = None, stream: Any = "own", back: Any = None, wait: bool = True) -> None:
        self._to = None if to is None else as_place(to)
        self._back = None if back is None else as_place(back)
        self._stream = own_or_given(stream)
        self._given = stream  # kept alive for the way back
        if not isinstance(wait, bool):
            raise TypeError(f"wait must be True or False, not {wait!r}")
        self._wait = wait
        self._return: Job | None = None
        super().__init__(arrays, [place for place in (self._to, self._back) if place is not None])

    def _begin(self, state: State, spans: Spans) -> None:
        job = Job(state, spans, self._target(state), *self._stream, self._wait, self.tally, self._arrays, self._serial)
        issue(job)
        if self._back is not None:
            self._return = replace(job, to=self._back, wait=False)
        else:
            self._arrays = []  # nothing more to do with them: let them go when their owner does

    def _target(self, state: State) -> Place:
        return Device(state.driver.current_device()) if self._to is None else self._to

    def _tell(self, state: State) -> int:
        place, stream = self._target(state), self._stream[0]
        return tell_begin(self._name, self._line, self._arrays, place=place, stream=stream)

    def _end(self, arrays: list[Array]) -> None:
        job, self._return = self._return, None
        if job is not None:
            issue_quietly(job)
        self._given = None


class advise(Scope):
    """A `with` block in which standing hints hold for the pages of arrays; they are taken back on exit.

    Parameters
    ----------
    *arrays : array, or dict, list or tuple of them
        CuPy, NumPy or torch arrays, views of any kind. Those not in managed memory are skipped and counted.
    read_mostly : bool, optional
        True: places that read may keep copies, and a write throws the copies away. False: not so in this block.
    preferred_location : place, optional
        Where pages should stay even if others access them.
    accessed_by : place or iterable of places
        Who should be able to reach the pages where they are, without moving them.

    Raises
    ------
    TypeError, ValueError
        What is no array or place, a device that is not there, or no advice at all; nothing has happened.
    ClosedError
        Entered a second time.

    Notes
    -----
    Advice acts on whole pages inside the arrays, so a neighbour is never touched; what is left out is counted. Scopes
    may overlap and end in any order: what remains is what the open scopes say, the newest first. Advice that somebody
    else had set is restored where the runtime lets it be read, else the exit is counted as not restored; a range with
    mixed advice reads as none. Advice is not ordered with streams: it holds from entry and is taken back on exit at
    once, though kernels queued in the block may not have run. Their results stay right, the effect is lost: keep the
    scope over the whole loop, or synchronise before leaving it. Different scopes may be used in any threads; an exit
    that meets another thread at work leaves its part to that thread.

    Examples
    --------
    >>> import numpy as np, umarray as um
    >>> w = np.ones(1000)
    >>> with um.advise(w, read_mostly=True):
    ...     total = w.sum()
    """

    _name = "advise"

    def __init__(
        self, *arrays: Any, read_mostly: bool | None = None, preferred_location: Any = None, accessed_by: Any = ()
    ) -> None:
        wishes: list[tuple[Topic, Value]] = []
        if preferred_location is not None:
            wishes.append((Topic(Advice.PREFERRED_LOCATION), as_place(preferred_location)))
        for place in _places(accessed_by):
            wishes.append((Topic(Advice.ACCESSED_BY, place), True))
        if read_mostly is not None:
            if not isinstance(read_mostly, bool):
                raise TypeError(f"read_mostly must be True or False, not {read_mostly!r}")
            wishes.append((Topic(Advice.READ_MOSTLY), read_mostly))
        if not wishes:
            raise ValueError("no advice was given: say read_mostly=, preferred_location= or accessed_by=")
        self._wishes = wishes
        self._entry: tuple[State, int] | None = None
        said = (one for topic, value in wishes for one in (topic.place, value))
        super().__init__(arrays, [one for one in said if isinstance(one, (Device, Host))])

    def _tell(self, state: State) -> int:
        said = (
            f"{topic.advice.name.lower()}={value if topic.place is None else topic.place}"
            for topic, value in self._wishes
        )
        return tell_begin(self._name, self._line, self._arrays, label=", ".join(said))

    def _begin(self, state: State, spans: Spans) -> None:
        inside = spans.inward()
        self.tally.bytes_left_out = spans.nbytes - sum(span.nbytes for span in inside)
        token = state.ledger.enter(self._wishes, [(span.start, span.stop) for span in inside], self.tally)
        self._entry = (state, token)

    def _end(self, arrays: list[Array]) -> None:
        if self._entry is not None:
            state, token = self._entry
            state.ledger.leave(token, self.tally, keep=arrays)


def move(*arrays: Any, to: Any = HOST, stream: Any = "own") -> Tally:
    """Ask arrays to move, now.

    Parameters
    ----------
    *arrays : array, or dict, list or tuple of them
        As in `prefetch`.
    to : place
        Where to.
    stream : "own", CuPy or torch stream, or int
        The stream on which pages move.

    Returns
    -------
    Tally
        What was asked, and what was not.

    Raises
    ------
    TypeError, ValueError
        What is no array, place or stream, or a device that is not there; nothing has happened.

    Notes
    -----
    Pages move after the work queued so far on the current stream, which waits for them in turn. The host does not: to
    read on the host use `host_view`.

    Examples
    --------
    >>> import numpy as np, umarray as um
    >>> print(um.move(np.ones(1000), to=um.HOST))
    0 asked (0 B), 0 unsupported, 1 of 1 arrays skipped (not managed memory); 0 calls
    """
    place, given = as_place(to), own_or_given(stream)
    if not arrays:
        raise TypeError("move needs at least one array, or a dict, list or tuple of arrays")
    found, tally, state = arrays_in(*arrays), Tally(), state_of(get_driver())
    check_place(state.driver, place)
    line = calling_line()
    spans = look_up(found, state.driver, tally, line)
    serial = tell_begin("move", line, found, place=place, stream=given[0])
    try:
        issue(Job(state, spans, place, *given, True, tally, found, serial))
    finally:
        tell_end(serial, "move")
    return tally


def own_or_given(stream: Any) -> tuple[int | None, int | None]:
    """Handle and device of a stream, None and None for our own."""
    if isinstance(stream, str):
        if stream != "own":
            raise ValueError(f'unknown stream {stream!r}: give "own", a CuPy or torch stream, or an int handle')
        return None, None
    return as_stream(stream)


def _places(accessed_by: Any) -> list[Place]:
    if isinstance(accessed_by, str) or not isinstance(accessed_by, Iterable):
        return [as_place(accessed_by)]
    return list(dict.fromkeys(as_place(one) for one in accessed_by))
