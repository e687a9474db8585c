"""Sizes in bytes as people write them: 4096, "512MiB", "2GB", "25%"."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    _UNITS[f"{_letter}iB"] = 1024**_power
    _UNITS[f"{_letter}B"] = 1000**_power
_UNITS["kB"] = 1000  # the SI spelling

_TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*|%)\s*")
LARGEST = 2**63 - 1


def parse_size(value: Any, *, total: Callable[[], int] | None = None, name: str = "size") -> int:
    """Bytes in `value`.

    Parameters
    ----------
    value : int or str
        Bytes, or text with a unit: powers of 1024 (KiB, MiB, GiB, TiB), powers of 1000 (kB, MB, GB, TB), or "25%".
    total : callable, optional
        Gives the bytes that a percentage is of; without it a percentage is refused.
    name : str
        What the size is for, for the message.

    Raises
    ------
    TypeError, ValueError
        Not a size, not positive, or 2**63 and more; the text quotes the value.

    Examples
    --------
    >>> from umarray.sizes import parse_size
    >>> parse_size("512MiB"), parse_size("2GB"), parse_size("25%", total=lambda: 1000)
    (536870912, 2000000000, 250)
    """
    if isinstance(value, str):
        return _in_range(_parse_text(value, total, name), value, name)
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        if isinstance(value, float):
            raise TypeError(f"{name} must be a whole number of bytes or text such as '512MiB', not the float {value!r}")
        raise TypeError(f"{name} must be an int or text such as '512MiB', not {value!r}")
    return _in_range(value.__index__(), value, name)


def _parse_text(text: str, total: Callable[[], int] | None, name: str) -> int:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{name} {text!r} is not a size: write an int, '512MiB', '2GB' or '25%'")
    number, unit = float(match[1]), match[2]
    if unit == "%":
        if total is None:
            raise ValueError(f"{name} {text!r} cannot be a percentage here: write an int, '512MiB' or '2GB'")
        if number > 100:
            raise ValueError(f"{name} {text!r} is over 100%")
        return int(total() * number / 100)
    if unit not in _UNITS:
        raise ValueError(f"{name} {text!r} has an unknown unit {unit!r}: known are {', '.join(u for u in _UNITS if u)}")
    scaled = number * _UNITS[unit]
    if not math.isfinite(scaled):
        raise ValueError(f"{name} {text!r} is too large")
    return int(match[1]) * _UNITS[unit] if match[1].isdecimal() else int(scaled)


def _in_range(nbytes: int, value: Any, name: str) -> int:
    if nbytes <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    if nbytes > LARGEST:
        raise ValueError(f"{name} {value!r} is 2**63 bytes or more")
    return nbytes


def format_size(nbytes: float) -> str:
    """`nbytes` for people, in powers of 1024.

    Examples
    --------
    >>> from umarray.sizes import format_size
    >>> format_size(512), format_size(3 << 20)
    ('512 B', '3.0 MiB')
    """
    if abs(nbytes) < 1024:
        return f"{nbytes:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        nbytes /= 1024
        if abs(nbytes) < 1024:
            return f"{nbytes:.1f} {unit}"
    return f"{nbytes / 1024:.1f} TiB"
