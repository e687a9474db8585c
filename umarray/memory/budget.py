"""Budgets: how many bytes a pool may hold, from arguments, the environment and what the device has free."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from umarray import settings
from umarray.drivers.base import Driver, Mode
from umarray.errors import NotSupported, OutOfMemory
from umarray.places import Place
from umarray.sizes import format_size, parse_size

FIRST_ARENA = 64 << 20
LIMIT_VARIABLE = "CUPY_GPU_MEMORY_LIMIT"
LEAST_HEADROOM = 1 << 30
HEADROOM_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes of the first arena, and of all arenas together on one device."""

    first: int
    limit: int
    headroom: int


def check_request(
    driver: Driver, arena_bytes: Any = None, limit: Any = None, headroom: Any = None, oversubscribe: Any = 1.0
) -> None:
    """Refuse what cannot be a budget on any device, touching none.

    Raises
    ------
    TypeError, ValueError, NotSupported
        The text quotes the value.
    """
    for name, value in (("arena_bytes", arena_bytes), ("limit", limit)):
        if value is not None:
            parse_size(value, total=lambda: 1 << 40, name=name)
    if headroom is not None and not _is_zero(headroom):
        parse_size(headroom, total=lambda: 1 << 40, name="headroom")
    if isinstance(oversubscribe, bool) or not isinstance(oversubscribe, (int, float)):
        raise TypeError(f"oversubscribe must be a number such as 1.5, not {oversubscribe!r}")
    if not (math.isfinite(oversubscribe) and oversubscribe >= 1):
        raise ValueError(f"oversubscribe must be 1.0 or more, and finite, not {oversubscribe!r}")
    if oversubscribe > 1 and driver.mode is not Mode.MANAGED:
        why = "; ".join(driver.reasons)
        raise NotSupported(
            f"oversubscribe={oversubscribe!r} needs managed mode, where pages can move out; this process runs in "
            f"{driver.mode.value} mode ({why}): leave it at 1.0"
        )


def make_budget(
    driver: Driver,
    place: Place,
    arena_bytes: Any = None,
    limit: Any = None,
    headroom: Any = None,
    oversubscribe: float = 1.0,
) -> Budget:
    """The budget on `place` as it is now: argument before environment before default.

    Parameters
    ----------
    arena_bytes : int or str, optional
        The first arena; else `UMARRAY_ARENA`; else 64 MiB, or the limit where that is less.
    limit : int or str, optional
        All arenas together; else `CUPY_GPU_MEMORY_LIMIT` on a device; else what is free less the headroom.
    headroom : int or str, optional
        What stays free for others: by default the larger of 1 GiB and 5 % of the memory, but never over a quarter.
    oversubscribe : float
        The limit may reach this many times what is free less the headroom.

    Raises
    ------
    OutOfMemory
        A size that was asked for does not fit; the text names the `oversubscribe` that would allow it.
    """
    check_request(driver, arena_bytes, limit, headroom, oversubscribe)
    info = driver.memory_info(place)

    def size(value: Any, name: str) -> int:
        return parse_size(value, total=lambda: info.total, name=name)

    if headroom is None:
        spare = min(max(LEAST_HEADROOM, int(info.total * HEADROOM_SHARE)), info.total // 4)
    else:
        spare = 0 if _is_zero(headroom) else size(headroom, "headroom")
    base = max(0, info.free - spare)
    most = int(base * oversubscribe)
    largest = most
    if limit is not None:
        largest = size(limit, "limit")
        _check_fits("limit", limit, largest, most, base, info.total - info.free)
    elif driver.mode is not Mode.HOST and (text := settings.text(LIMIT_VARIABLE)) is not None:
        largest = min(most, size(text, LIMIT_VARIABLE))
    name = "arena_bytes"
    if arena_bytes is None and (text := settings.text("UMARRAY_ARENA")) is not None:
        arena_bytes, name = text, "UMARRAY_ARENA"
    if arena_bytes is None:
        first = min(FIRST_ARENA, largest)
    else:
        first = size(arena_bytes, name)
        if first > largest and largest < most:
            raise OutOfMemory(first, 0, largest, f"{name} {arena_bytes!r} is above the limit: raise limit= or lower it")
        _check_fits(name, arena_bytes, first, most, base, info.total - info.free)
    return Budget(first, largest, spare)


def _is_zero(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value == 0


def _check_fits(name: str, value: Any, nbytes: int, most: int, base: int, used: int) -> None:
    if nbytes <= most:
        return
    detail = f"{name} {value!r} is more than the {format_size(base)} that are free less the headroom"
    if base > 0:
        ratio = math.ceil(nbytes / base * 100) / 100
        detail += f"; oversubscribe={ratio} would allow it, in managed mode only"
    raise OutOfMemory(nbytes, used, most, detail)
