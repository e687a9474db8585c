"""What the tests on the emulated device need of the machine: a wheel of CuPy for ROCm, and a C++ compiler."""

from __future__ import annotations

import importlib.metadata
import os
import shutil

from umarray.hipemu import rocm

__all__ = ["in_ci", "installed_wheel", "missing_for_emulation"]


def in_ci() -> bool:
    """Whether what is missing must fail, not be skipped: ``CI=true``."""
    return os.environ.get("CI", "").lower() == "true"


def installed_wheel() -> rocm.Rocm | None:
    """The ROCm of the wheel that is installed; None without one that the emulator knows."""
    for version in rocm.VERSIONS.values():
        try:
            importlib.metadata.distribution(version.wheel)
        except importlib.metadata.PackageNotFoundError:
            continue
        return version
    return None


def missing_for_emulation() -> str:
    """Why nothing can be run on the emulated device here; empty where it can."""
    if os.environ.get("HIPEMU"):
        return "this process is emulated already"
    if installed_wheel() is None:
        return f"none of the wheels {', '.join(version.wheel for version in rocm.VERSIONS.values())} is installed"
    compiler = os.environ.get("HIPEMU_CXX", "g++")
    return "" if shutil.which(compiler) else f"there is no C++ compiler ({compiler})"
