"""The versions of ROCm that the emulated device answers as, each with the wheel of CuPy that runs on it."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["VERSIONS", "Rocm", "choose", "named"]


@dataclass(frozen=True)
class Rocm:
    """One version of ROCm, as far as Python must know it; the rest is in ``native/rocm.h`` and ``native/symbols``."""

    number: int
    """Its major version, as in ``--rocm 7``."""
    wheel: str
    """The wheel of CuPy that was built for it."""
    runtime: str
    """The name of its runtime library."""
    compiler: str
    """The library that hiprtc's functions are in: the runtime itself, or one of its own (since ROCm 7)."""


VERSIONS = {
    "5": Rocm(5, "cupy-rocm-5-0", "libamdhip64.so.5", "libamdhip64.so.5"),
    "7": Rocm(7, "cupy-rocm-7-0", "libamdhip64.so.7", "libhiprtc.so.7"),
}
_VARIABLE = "HIPEMU_ROCM"


def named(text: str | int) -> Rocm:
    """Return the version that a number names.

    Raises
    ------
    ValueError
        The emulator does not know it.
    """
    found = VERSIONS.get(str(text))
    if found is None:
        raise ValueError(f"rocm: {str(text)!r} (wanted {' or '.join(VERSIONS)})")
    return found


def choose() -> Rocm:
    """Return the version to emulate: `HIPEMU_ROCM`, else that of the installed wheel, else (no wheel) the first.

    Raises
    ------
    ValueError
        The variable names a version that is unknown, or what is installed does not tell: a wheel for another ROCm, or
        two wheels, which overwrite each other.
    """
    asked = os.environ.get(_VARIABLE)
    return named(asked) if asked else _of_wheels(_installed())


def _installed() -> list[str]:
    """Return the names of the installed CuPy wheels for ROCm."""
    names = (d.metadata["Name"] or "" for d in importlib.metadata.distributions())
    return sorted({n for n in (name.lower().replace("_", "-") for name in names) if n.startswith("cupy-rocm-")})


def _of_wheels(wheels: Iterable[str]) -> Rocm:
    wheels = list(wheels)
    if not wheels:
        return next(iter(VERSIONS.values()))
    known = [version for version in VERSIONS.values() if version.wheel in wheels]
    if len(wheels) == 1 and known:
        return known[0]
    wanted = " or ".join(version.wheel for version in VERSIONS.values())
    choices = " or ".join(VERSIONS)
    raise ValueError(
        f"rocm: {', '.join(wheels)} installed (wanted one of {wanted}); say which ROCm to emulate: --rocm {choices}"
    )
