"""Calibrations on disk: one small JSON file a device and set of versions, in the user's cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from umarray import settings
from umarray._version import __version__
from umarray.calibration.figures import Calibration
from umarray.drivers.base import Driver
from umarray.log import warn_once

FORMAT = 1


def folder() -> Path:
    """Where calibrations are kept: `UMARRAY_CACHE`, else platformdirs' folder where that is installed, else XDG's."""
    given = settings.text("UMARRAY_CACHE")
    if given is not None:
        return Path(given) / "calibration"
    try:
        from platformdirs import user_cache_path
    except ImportError:
        home = os.environ.get("XDG_CACHE_HOME", "")
        base = Path(home) if os.path.isabs(home) else Path.home() / ".cache"  # a relative one is to be ignored
        return base / "umarray" / "calibration"
    return Path(user_cache_path("umarray")) / "calibration"


def key_of(driver: Driver, device: int) -> dict[str, str]:
    """What a calibration holds for: the device, the driver, and the versions of everything between."""
    traits = driver.traits(device)
    return {
        "device": str(device),
        "name": traits.name,
        "architecture": traits.architecture,
        "bytes": str(traits.total_bytes),
        "mode": driver.mode.value,
        "driver": driver.name,
        "umarray": __version__,
        **driver.versions(),
    }


def emulated(key: dict[str, str]) -> bool:
    """Whether a key is that of an emulated device, whose figures are those of the CPU that plays it."""
    return key["name"].endswith("(emulated)")


def path_of(key: dict[str, str]) -> Path:
    """The file for a key."""
    name = re.sub(r"[^a-z0-9]+", "-", key["name"].lower()).strip("-") or "device"
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]
    return folder() / f"{name}-{key['device']}-{digest}.json"


def load(key: dict[str, str]) -> Calibration | None:
    """What was stored for `key`; None where there is nothing, or (with a warning, once) nothing that can be used."""
    try:
        path = path_of(key)
        text = path.read_text()
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError, UnicodeDecodeError) as error:  # no home folder is a RuntimeError
        warn_once("the stored calibration cannot be read, and is ignored", error=error)
        return None
    try:
        values = json.loads(text)
        if values["format"] != FORMAT or values["key"] != key:
            raise ValueError("it is of another format, device or version")
        found = Calibration.from_dict(values["calibration"])
        if not found.measured:
            raise ValueError("it was not measured")
        return found
    except Exception as error:
        warn_once("the stored calibration %s is damaged or foreign, and is ignored", path, error=error, about=path)
        return None


def save(key: dict[str, str], calibration: Calibration) -> Path | None:
    """Store it, in one step, so that nobody reads a half; None (with a warning) where it cannot be stored."""
    try:
        path = path_of(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        values: dict[str, Any] = {"format": FORMAT, "key": key, "calibration": calibration.as_dict()}
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".json")
        try:
            with open(handle, "w") as file:
                json.dump(values, file, indent=1)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except (OSError, RuntimeError) as error:
        warn_once("the calibration cannot be stored, and holds for this process only", error=error)
        return None
    return path


@contextmanager
def alone() -> Iterator[None]:
    """One process measures at a time: two would disturb one another. Where no lock can be had, go on without."""
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        file = open(place / "lock", "a")  # noqa: SIM115 - closed below
    except (OSError, RuntimeError):
        yield
        return
    with file:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
