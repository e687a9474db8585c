"""role: the combinations of advice and prefetch that practitioners arrive at, by the name of what they are for."""

from __future__ import annotations

from typing import Any, TypeVar

from umarray.calibration import Calibration, current
from umarray.drivers.base import Advice, Array
from umarray.errors import UmarrayWarning
from umarray.html import note, page, table
from umarray.places import HOST, Device, Host, Place, as_place
from umarray.residency.ledger import Topic, Value
from umarray.residency.prefetching import Job, room_for, send
from umarray.residency.scope import Scope
from umarray.residency.spans import Spans
from umarray.residency.state import State
from umarray.residency.telling import tell_begin
from umarray.sizes import format_size

ROLES = {"weights": True, "batch": True, "table": False, "cold": True}
"""The roles, and whether what has one is written unless told otherwise."""

_Self = TypeVar("_Self", bound="role")
_Wishes = list[tuple[Topic, Value]]


class role(Scope):
    """A `with` block, or a handle with `undo`, in which arrays are treated as what they are for.

    Parameters
    ----------
    x : array, or dict, list or tuple of them
        CuPy, NumPy or torch arrays, views of any kind.
    name : "weights", "batch", "table" or "cold"
        What they are for; see Notes.
    writable : bool, optional
        Whether they are written while they have the role: by default all but a table.
    on : Device, int or cupy.cuda.Device, optional
        The device that works with them; the current one at entry by default.

    Attributes
    ----------
    picked : str
        What was picked, and why; `print` shows it.
    tally : Tally
        What was asked and what became of it.

    Raises
    ------
    TypeError, ValueError
        What is no array or device, an unknown role; nothing has happened.
    ClosedError
        Entered or applied a second time.

    Notes
    -----
    "weights" prefer the device and are moved there; read-mostly where they are not written. A "batch" is the same where
    copies beat the bus, and a host view then writes it by a copy; else it stays on the host and is read over the bus. A
    "table" is moved to the device as a whole, read-mostly, or preferring the device where it is written; one that does
    not fit stays on the host and is reached over the bus, with a warning. "cold" data stays on the host, and is reached
    over the bus.

    Advice acts on whole pages inside the arrays and is taken back at the end, as `advise` does; pages stay where they
    are. A handle keeps its arrays alive; one that is dropped is undone.

    Examples
    --------
    >>> import numpy as np, umarray as um
    >>> w = np.ones(1000)
    >>> with um.role(w, "weights"):
    ...     total = w.sum()
    >>> handle = um.role(w, "table").apply()
    >>> handle.undo()
    """

    _name = "role"

    def __init__(self, x: Any, name: str, *, writable: bool | None = None, on: Any = None) -> None:
        if not isinstance(name, str) or name not in ROLES:
            raise (ValueError if isinstance(name, str) else TypeError)(
                f"unknown role {name!r}: give one of {', '.join(map(repr, ROLES))}"
            )
        if writable is not None and not isinstance(writable, bool):
            raise TypeError(f"writable must be True or False, not {writable!r}")
        place = None if on is None else as_place(on)
        if isinstance(place, Host):
            raise ValueError("a role is for work on a device: give on= a device")
        self.name, self.writable = name, ROLES[name] if writable is None else writable
        self._on = place
        self.picked = "nothing yet"
        self._entry: tuple[State, int] | None = None
        super().__init__((x,), [] if place is None else [place])

    def apply(self: _Self) -> _Self:
        """Begin, outside of a `with` block; keep what comes back, and call its `undo` in the end."""
        return self.__enter__()

    def undo(self) -> None:
        """Take the advice back. A second time, and after the `with` block, nothing happens."""
        if self._phase == "open":
            super().__exit__(None, None, None)

    def __exit__(self, kind: Any, error: Any, tb: Any) -> None:
        self.undo()

    def _tell(self, state: State) -> int:
        return tell_begin(self._name, self._line, self._arrays, label=self.name, place=self._on)

    def _begin(self, state: State, spans: Spans) -> None:
        driver = state.driver
        pages = spans.outward()
        if not driver.device_count() or not pages:
            self.picked = "nothing: no array in managed memory, which alone moves"
            return
        device = driver.current_device() if self._on is None else self._on.id
        if driver.traits(device).unified:
            self.picked = "nothing: host and device share one memory"
            return
        job = Job(state, spans, Device(device), None, None, True, self.tally, self._arrays, self._serial)
        nbytes = sum(span.nbytes for span in pages)
        room = room_for(job, nbytes)
        place, self.picked = self._home(nbytes, room, current(device), device)
        wishes = self._wishes(place, device)
        if isinstance(place, Device):
            send(job, pages)
            if (
                wishes[-1][0].advice is Advice.READ_MOSTLY
            ):  # pages that move under it are copied, at a quarter the speed
                lane = state.streams.lane(device)
                driver.synchronize(lane.stream, lane.device)
        elif self.name == "cold":
            send(Job(state, spans, HOST, None, None, True, self.tally, self._arrays, self._serial), pages)
        inside = spans.inward()
        self.tally.bytes_left_out = spans.nbytes - sum(span.nbytes for span in inside)
        ranges = [(span.start, span.stop) for span in inside]
        self._entry = (state, state.ledger.enter(wishes, ranges, self.tally))
        if room is not None and nbytes > room and self.name != "cold":
            self._line.warn(f'the role "{self.name}": {self.picked}', UmarrayWarning)

    def _home(self, nbytes: int, room: int | None, costs: Calibration, device: int) -> tuple[Place, str]:
        """Where the arrays should be, and why."""
        here, name = Device(device), self.name
        if name == "cold":
            return HOST, "on the host, reached over the bus: cold data leaves the device's memory to others"
        if room is not None and nbytes > room:
            text = f"{format_size(nbytes)} do not fit into the {format_size(room)} that are free on {here}"
            return HOST, f"on the host, reached over the bus: {text}"
        if name == "batch" and costs.copy_managed is not None and costs.bus is not None:
            copy, bus = costs.copy_managed(nbytes), costs.bus(nbytes)
            text = f"a copy takes {copy * 1e6:.0f} us, reading over the bus {bus * 1e6:.0f} us"
            return (HOST, f"on the host, reached over the bus: {text}") if bus < copy else (here, f"on {here}: {text}")
        return here, f"on {here}, and there is room" if name == "table" else f"on {here}, where the work is"

    def _wishes(self, place: Place, device: int) -> _Wishes:
        if not isinstance(place, Device):
            return [(Topic(Advice.PREFERRED_LOCATION), HOST), (Topic(Advice.ACCESSED_BY, Device(device)), True)]
        if self.writable:
            return [(Topic(Advice.PREFERRED_LOCATION), place)]
        preferred: _Wishes = [] if self.name == "table" else [(Topic(Advice.PREFERRED_LOCATION), place)]
        return [*preferred, (Topic(Advice.READ_MOSTLY), True)]

    def _end(self, arrays: list[Array]) -> None:
        entry, self._entry = self._entry, None
        if entry is not None:
            state, token = entry
            state.ledger.leave(token, self.tally, keep=arrays)

    def __str__(self) -> str:
        return f'role "{self.name}", {self._phase}: {self.picked}; {self.tally}'

    def _repr_html_(self) -> str:
        rows = [(self.name, "written" if self.writable else "read only", self.picked)]
        return page(f"role, {self._phase}", table(("role", "use", "picked"), rows), note(str(self.tally)))
