"""What ``%umarray`` shows: mode, pool, budget, and what is alive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from umarray import html
from umarray.drivers import get_driver
from umarray.drivers.base import Mode
from umarray.memory import active
from umarray.memory.statistics import PoolStatistics
from umarray.observe.alive import ERROR, HISTORY, NAME, Alive, Found, alive_in
from umarray.places import HOST, Device
from umarray.sizes import format_size

SHOWN = 12  # arrays, the largest


@dataclass(frozen=True, slots=True)
class Status(html.Shown):
    """A notebook's session at one moment, as plain values: it keeps no array alive."""

    mode: str
    reasons: tuple[str, ...]
    place: str
    """The current device's name, or the host."""
    free_bytes: int
    total_bytes: int
    pool: PoolStatistics | None
    """The pool of this thread or of the process; None where there is none."""
    alive: Found

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows) + 2
        lines = [self._title(), *(f"  {name:<{width}}{value}" for name, value in rows)]
        for one in self._largest():
            lines.append(f"    {one.name}  {_what(one)}  {format_size(one.nbytes)}  ({one.by})")
        return "\n".join([*lines, *(f"  {line}" for line in self._remedies())])

    def _repr_html_(self) -> str:
        head = ("array", "shape and type", "size", "memory", "kept alive by")
        found = [(one.name, _what(one), format_size(one.nbytes), one.memory, one.by) for one in self._largest()]
        parts = [html.pairs(self._rows()), html.table(head, found) if found else ""]
        return html.page(self._title(), *parts, *(html.note(line) for line in self._remedies()))

    def _title(self) -> str:
        return f"umarray: {self.mode} mode on {self.place}"

    def _rows(self) -> list[tuple[str, str]]:
        pool = self.pool
        rows = [("why", "; ".join(self.reasons))]
        if pool is None:
            rows.append(("pool", "none is on (%umarray on 8GiB puts one on for this session)"))
        else:
            arenas = f"{pool.arenas} {'arena' if pool.arenas == 1 else 'arenas'}, {format_size(pool.arena_bytes)}"
            rows.append(("pool", f"{pool.kind} memory, {format_size(pool.current_bytes)} alive in {arenas}"))
        most = "" if pool is None else f"the pool may reach {format_size(pool.limit_bytes)}; "
        free = f"{format_size(self.free_bytes)} of {format_size(self.total_bytes)} are free"
        rows.append(("budget", f"{most}{free}"))
        if pool is not None and pool.escapes is not None:
            rows.append(("escaped", _sum((one.count, one.nbytes) for one in pool.escapes)))
        for who in (NAME, HISTORY, ERROR):
            only = "" if who == NAME else " only"
            rows.append((f"by {who}{only}", _sum((1, one.nbytes) for one in self.alive.by(who))))
        if pool is not None:
            rest = pool.current_bytes - sum(one.nbytes for one in self.alive.arrays if one.memory == pool.kind)
            if rest > 0:
                rows.append(("by something else", f"{format_size(rest)}, in objects that no name here leads to"))
        return rows

    def _largest(self) -> tuple[Alive, ...]:
        return self.alive.arrays[:SHOWN]

    def _remedies(self) -> list[str]:
        lines = []
        if len(self.alive.arrays) > SHOWN:
            lines.append(f"... and {len(self.alive.arrays) - SHOWN} smaller ones")
        if self.alive.by(HISTORY) or self.alive.by(ERROR):
            lines.append("%umarray forget lets go of what only the output history or the last error keeps")
        if not self.alive.whole:
            lines.append("The search was given up, there being too many objects: there may be more arrays")
        return lines


def status_of(shell: Any) -> Status:
    """The session of an IPython shell."""
    driver = get_driver()
    index = driver.current_device()
    on_host = driver.mode is Mode.HOST
    info = driver.memory_info(HOST if on_host else Device(index))
    pool = active.current()
    return Status(
        mode=driver.mode.value,
        reasons=driver.reasons,
        place="the host" if on_host else f"{driver.traits(index).name} (device {index})",
        free_bytes=info.free,
        total_bytes=info.total,
        pool=None if pool is None else pool.statistics(),
        alive=alive_in(shell),
    )


def _what(one: Alive) -> str:
    return f"{' x '.join(map(str, one.shape)) or 'a number'} {one.dtype}"


def _sum(counted: Iterable[tuple[int, int]]) -> str:
    pairs = list(counted)
    count = sum(number for number, _ in pairs)
    if not count:
        return "none"
    return f"{count} {'array' if count == 1 else 'arrays'}, {format_size(sum(nbytes for _, nbytes in pairs))}"
