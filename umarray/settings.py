"""Settings from the environment. An argument comes before the environment, the environment before a default."""

from __future__ import annotations

import os

_OFF = frozenset({"", "0", "false", "off", "no"})
MODES = ("auto", "managed", "explicit", "host")


def text(name: str) -> str | None:
    """The value of an environment variable, or None where it is missing, empty, 0, false, off or no."""
    value = os.environ.get(name, "").strip()
    return None if value.lower() in _OFF else value


def mode() -> str:
    """The mode that `UMARRAY_MODE` asks for, "auto" by default.

    Raises
    ------
    ValueError
        The variable holds anything else than auto, managed, explicit or host.
    """
    value = text("UMARRAY_MODE")
    if value is None:
        return "auto"
    if value.lower() not in MODES:
        raise ValueError(f"UMARRAY_MODE={value!r} is no mode: it takes {', '.join(MODES)}")
    return value.lower()
