"""What this process can do and why, as one frozen value and as a report."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from umarray import html
from umarray._version import __version__
from umarray.drivers import cupy_wheels, get_driver
from umarray.drivers.base import Traits
from umarray.drivers.native import loaded_libraries
from umarray.sizes import format_size

_VENDOR = re.compile(r"lib(amd|hip|hsa|roc|rccl|MIOpen|cuda|cu(blas|fft|rand|solver|sparse|tensor|pti)|nv|nccl)")
_SETTINGS = (
    "UMARRAY_MODE UMARRAY_ARENA UMARRAY_COUNTERS CUPY_GPU_MEMORY_LIMIT CUPY_CUDA_PER_THREAD_DEFAULT_STREAM HSA_XNACK "
    "HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES HSA_OVERRIDE_GFX_VERSION "
    "CUDA_MANAGED_FORCE_DEVICE_ALLOC ROCM_HOME NUMBA_NUM_THREADS NUMBA_THREADING_LAYER"
).split()


@dataclass(frozen=True, slots=True)
class Capabilities(html.Shown):
    """What this process can do, and why; `str()` is a report for people."""

    mode: str
    """"managed", "explicit" or "host"."""
    reasons: tuple[str, ...]
    """Why that mode, in sentences."""
    driver: str
    """"cuda", "hip" or "host"."""
    devices: tuple[Traits, ...]
    """What each visible device can do, with the reasons."""
    versions: Mapping[str, str]
    """Of umarray, Python, NumPy, CuPy, the vendor's runtime and its driver, as far as they are here."""
    libraries: tuple[str, ...]
    """File names of the vendor's libraries that this process has loaded."""
    environment: Mapping[str, str]
    """Those settings in the environment that matter here and are set."""
    advice: tuple[str, ...]
    """What could be set outside the process, and what that would change. umarray sets none of it."""

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values that JSON can hold."""
        devices = [{**asdict(traits), "device": traits.device.id} for traits in self.devices]
        for traits in devices:
            traits["reasons"] = list(traits["reasons"])
        return {
            "mode": self.mode,
            "reasons": list(self.reasons),
            "driver": self.driver,
            "devices": devices,
            "versions": dict(self.versions),
            "libraries": list(self.libraries),
            "environment": dict(self.environment),
            "advice": list(self.advice),
        }

    def __str__(self) -> str:
        lines = [f"mode      {self.mode}", *(f"          {reason}" for reason in self.reasons)]
        lines.append(f"driver    {self.driver}")
        for traits in self.devices:
            memory = format_size(traits.total_bytes)
            lines.append(f"device {traits.device.id}  {traits.name}, {traits.architecture}, {memory}")
            lines.append(f"          {_yes_and_no(traits)}")
            lines.extend(f"          {reason}" for reason in traits.reasons if reason not in self.reasons)
        lines.extend(_section("versions", [f"{name} {version}" for name, version in self.versions.items()]))
        lines.extend(_section("libraries", self.libraries or ["no vendor library is loaded"]))
        lines.extend(_section("settings", [f"{name}={value}" for name, value in self.environment.items()] or ["none"]))
        lines.extend(_section("advice", self.advice))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        devices = [
            (
                traits.device.id,
                f"{traits.name}, {traits.architecture}",
                format_size(traits.total_bytes),
                _yes_and_no(traits),
                "\n".join(reason for reason in traits.reasons if reason not in self.reasons),
            )
            for traits in self.devices
        ]
        about = [
            ("why", "\n".join(self.reasons)),
            ("driver", self.driver),
            ("versions", ", ".join(f"{name} {version}" for name, version in self.versions.items())),
            ("libraries", ", ".join(self.libraries) or "no vendor library is loaded"),
            ("settings", "\n".join(f"{name}={value}" for name, value in self.environment.items()) or "none"),
            *([("advice", "\n".join(self.advice))] if self.advice else []),
        ]
        head = ("device", "name", "memory", "can", "why")
        return html.page(f"{self.mode} mode", html.pairs(about), html.table(head, devices) if devices else "")


def capabilities() -> Capabilities:
    """What this process can do: its mode and the reasons, the driver, devices, versions, libraries, settings.

    Raises
    ------
    BrokenInstallation, NotSupported, ValueError
        No driver could be chosen; the text says what is broken and what to do.

    Notes
    -----
    The first call in a process chooses the driver, as any other use of umarray does.

    Examples
    --------
    >>> import umarray as um
    >>> um.capabilities().mode in ("managed", "explicit", "host")
    True
    """
    driver = get_driver()
    devices = tuple(driver.traits(index) for index in range(driver.device_count()))
    versions = {"umarray": __version__, "python": platform.python_version(), "numpy": np.__version__}
    versions.update(driver.versions())
    wheels = cupy_wheels()
    if "cupy" not in versions and wheels:
        versions["cupy"] = f"not loaded ({', '.join(wheels)})"
    if "numba" in sys.modules:
        versions["numba"] = importlib.metadata.version("numba")
    libraries = tuple(sorted({path.name for path in loaded_libraries() if _VENDOR.match(path.name)}))
    environment = {name: os.environ[name] for name in _SETTINGS if name in os.environ}
    advice = driver.advice()
    if len(wheels) > 1:
        advice = (*advice, f"several CuPy wheels overwrite each other: keep one of {', '.join(wheels)}")
    return Capabilities(
        mode=driver.mode.value,
        reasons=driver.reasons,
        driver=driver.name,
        devices=devices,
        versions=MappingProxyType(versions),
        libraries=libraries,
        environment=MappingProxyType(environment),
        advice=advice,
    )


def _yes_and_no(traits: Traits) -> str:
    names = ("managed", "unified", "prefetch", "prefetch_blocks", "readable_ranges", "coarse_grain")
    return ", ".join(f"{name.replace('_', ' ')}: {'yes' if getattr(traits, name) else 'no'}" for name in names)


def _section(title: str, lines: Any) -> list[str]:
    return [f"{title if number == 0 else '':9} {line}" for number, line in enumerate(lines)]
