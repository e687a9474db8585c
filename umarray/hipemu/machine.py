"""The emulated machine as a process sees it: settings, checked here, turned into environment variables."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from . import build
from . import rocm as versions

__all__ = ["PROFILES", "environment", "parse_size"]

PROFILES = ("mi210", "mi250x", "mi300x", "mi300a", "h200")
_ADDRESSES = 64 << 40  # of the 128 TiB of a process; all memory is reserved four times over, once a device and the host
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_size(text: str | int) -> int:
    """Turn ``"256MiB"``, ``"64K"`` or a number into bytes (units are powers of 1024).

    Examples
    --------
    >>> parse_size("64KiB"), parse_size("1.5G"), parse_size(4096)
    (65536, 1610612736, 4096)
    """
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", text, re.IGNORECASE)
    if not match:
        raise ValueError(f"not a size: {text!r} (wanted for example 256MiB)")
    return int(Fraction(match[1]) * _UNITS[match[2].lower()])


def environment(
    *,
    devices: int = 1,
    memory: str | int = "4GiB",
    page: str | int = "64KiB",
    xnack: bool = True,
    profile: str = "mi210",
    rocm: str | int | None = None,
    strict: bool = False,
    blocking_prefetch: bool = False,
    report: bool = False,
    trace: str | os.PathLike[str] | None = None,
    base: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> dict[str, str]:
    """Return the environment in which a child process finds the emulated device, building it first if need be.

    Parameters
    ----------
    devices : int
        How many devices, 1 to 8.
    memory : str or int
        The size of each, such as ``"256MiB"``; at least 16 pages, at most what a process can address.
    page : str or int
        The size of a page that migrates, a power of two of at least 4 KiB.
    xnack : bool
        Whether devices fault and migrate. Without it managed memory is host memory reached over the bus.
    profile : str
        Which card the properties and the modelled costs are those of; one of `PROFILES`.
    rocm : int, optional
        The major version of ROCm that the device answers as, 5 or 7. By default the environment variable
        ``HIPEMU_ROCM``, else the one that the installed CuPy wheel was built for, else 5.
    strict : bool
        Answer as real ROCm 5 does even where CuPy 13.0 to 13.3 cannot live with it.
    blocking_prefetch : bool
        A prefetch returns when its pages have moved, as in ROCm 6.1.
    report : bool
        Print the counters when the process ends.
    trace : path, optional
        A file that gets one line for each API call.
    base : mapping, optional
        The environment to start from; this process's own by default.
    quiet : bool
        Print nothing while building.

    Raises
    ------
    ValueError
        A setting that no machine could have, or a CuPy wheel for a ROCm that is not emulated.
    BuildError
        No compiler, or a build that failed.
    """
    memory_bytes, page_bytes = parse_size(memory), parse_size(page)
    if not 1 <= devices <= 8:
        raise ValueError(f"devices: {devices} (wanted 1 to 8)")
    if page_bytes < 4096 or page_bytes & (page_bytes - 1):
        raise ValueError(f"page: {page!r} (wanted a power of two of at least 4KiB)")
    if memory_bytes < 16 * page_bytes:
        raise ValueError(f"memory: {memory!r} (wanted at least 16 pages, {16 * page_bytes} bytes)")
    most = _ADDRESSES // (4 * devices * (devices + 1))
    if memory_bytes > most:
        raise ValueError(f"memory: {memory!r} (wanted at most {most} bytes for each of {devices} devices)")
    if profile not in PROFILES:
        raise ValueError(f"profile: {profile!r} (wanted one of {', '.join(PROFILES)})")
    if trace:
        _check_writable(Path(trace))
    version = versions.choose() if rocm is None else versions.named(rocm)
    folder = build.library_folder(version, quiet=quiet)
    settings = dict(os.environ if base is None else base)
    home = str(folder / "rocm")
    settings.update(
        HIPEMU="1",
        HIPEMU_HOME=str(folder),
        HIPEMU_CXX=build.compiler(),
        HIPEMU_ROCM=str(version.number),
        HIPEMU_DEVICES=str(devices),
        HIPEMU_MEMORY=str(memory_bytes),
        HIPEMU_PAGE=str(page_bytes),
        HIPEMU_XNACK="1" if xnack else "0",
        HIPEMU_PROFILE=profile,
        HIPEMU_STRICT="1" if strict else "0",
        HIPEMU_BLOCKING_PREFETCH="1" if blocking_prefetch else "0",
        HIPEMU_REPORT="1" if report else "0",
        HIPEMU_TRACE=str(Path(trace).absolute()) if trace else "",
        HSA_XNACK="1" if xnack else "0",
        ROCM_HOME=home,
        ROCM_PATH=home,
        HIP_PATH=home,
    )
    settings.setdefault("HIPEMU_BLAS", _openblas())
    settings["LD_LIBRARY_PATH"] = _front(str(folder / "lib"), settings.get("LD_LIBRARY_PATH"))
    settings["LD_PRELOAD"] = _preloaded(str(folder / "lib" / build.PRELOAD), settings.get("LD_PRELOAD"))
    settings["PATH"] = _front(os.path.dirname(sys.executable), _front(home + "/bin", settings.get("PATH")))
    settings.setdefault("CUPY_CACHE_DIR", str(folder / "kernels"))
    return settings


def _check_writable(trace: Path) -> None:
    try:
        trace.open("a").close()
    except OSError as error:
        raise ValueError(f"trace: {str(trace)!r} ({error.strerror})") from None


def _openblas() -> str:
    """Return the path of scipy-openblas32's library, or nothing where it is not installed."""
    spec = importlib.util.find_spec("scipy_openblas32")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for library in sorted(Path(folder, "lib").glob("libscipy_openblas.so*")):
            return str(library)
    return ""


def _front(entry: str, path: str | None) -> str:
    rest = [p for p in (path or "").split(os.pathsep) if p and p != entry]
    return os.pathsep.join([entry, *rest])


def _preloaded(entry: str, path: str | None) -> str:
    """Put the entry in front, but behind the runtime of a sanitizer, which insists on being the first."""
    rest = [p for p in (path or "").split(os.pathsep) if p and p != entry]
    first = [p for p in rest if Path(p).name.startswith(("libasan.", "libtsan."))]
    return os.pathsep.join([*first, entry, *(p for p in rest if p not in first)])
