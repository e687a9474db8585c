"""Builds the emulator's libraries with g++, once for each state of the sources, into a cache folder."""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import stubs
from .progress import Progress
from .rocm import Rocm, choose

__all__ = ["BuildError", "cache_folder", "compiler", "library_folder"]

NATIVE = Path(__file__).parent / "native"
FLAGS = ["-std=c++17", "-O2", "-g1", "-fPIC", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra"]
PRELOAD = "libhipemu_wheel.so"
HIPRTC = ("api_rtc", "translate")  # the units of hiprtc, which may be a library of its own


class BuildError(RuntimeError):
    """The libraries could not be built; the text says why, and what would help."""


def compiler() -> str:
    """Return the path of the C++ compiler.

    Raises
    ------
    BuildError
        There is none; the text names the package to install.
    """
    named = os.environ.get("HIPEMU_CXX", "g++")
    found = shutil.which(named)
    if found is None:
        raise BuildError(
            f"the emulated HIP device is built with {named}, which is not on PATH: "
            "install the package g++ (Debian, Ubuntu), gcc-c++ (Fedora) or gcc (Arch), or set HIPEMU_CXX"
        )
    return found


def cache_folder() -> Path:
    """Return the folder that holds every build: ``HIPEMU_CACHE``, else ``umarray/hipemu`` in the user's cache."""
    chosen = os.environ.get("HIPEMU_CACHE")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "umarray" / "hipemu"


def library_folder(rocm: Rocm | None = None, *, quiet: bool = False) -> Path:
    """Return the folder of a finished build of these sources for a version of ROCm, building it first if need be.

    Parameters
    ----------
    rocm : Rocm, optional
        The version that the libraries answer as; by default the one that `rocm.choose` gives.
    quiet : bool
        Print nothing on stderr while building.

    Notes
    -----
    Safe for any number of processes at once: one builds under a lock, the others wait for it. The folder appears
    under its name only when it is whole.
    """
    rocm = rocm or choose()
    cxx = compiler()
    folder = cache_folder() / _digest(cxx, rocm)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / f"{folder.name}.lock"):
            if not folder.is_dir():
                _build(cxx, rocm, folder, quiet)
    return folder


def sources() -> list[Path]:
    """Return every file that a build depends on."""
    return sorted(p for p in NATIVE.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def _digest(cxx: str, rocm: Rocm) -> str:
    version = subprocess.run([cxx, "--version"], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256(version.encode())
    digest.update(repr([*FLAGS, *_extra_flags(), rocm]).encode())
    for extra in (Path(__file__), Path(stubs.__file__)):
        digest.update(extra.read_bytes())
    for path in sources():
        digest.update(str(path.relative_to(NATIVE)).encode() + b"\0" + path.read_bytes())
    return f"rocm{rocm.number}-{digest.hexdigest()[:20]}"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(cxx: str, rocm: Rocm, folder: Path, quiet: bool) -> None:
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        (work / "lib").mkdir()
        (work / "obj").mkdir()
        units = {part: _objects(work, NATIVE / part) for part in ("", "libraries", "preload")}
        missing = list(stubs.generate(NATIVE / "symbols" / f"rocm{rocm.number}"))
        _device_headers(work, rocm)
        _run_all([*_compilations(cxx, rocm, work, units, missing), _precompilation(cxx, work)], quiet)
        _link_runtime(cxx, rocm, work, units[""])
        _link_libraries(cxx, rocm, work, units["libraries"], missing)
        _link(cxx, work, PRELOAD, list(units["preload"].values()))
        _lay_out(work)
        shutil.rmtree(work / "obj")
        os.rename(work, folder)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def _objects(work: Path, folder: Path) -> dict[Path, Path]:
    """Return the C++ sources of a folder, each with its object file."""
    return {unit: work / "obj" / f"{folder.name}-{unit.stem}.o" for unit in sorted(folder.glob("*.cpp"))}


def _compilations(
    cxx: str, rocm: Rocm, work: Path, units: dict[str, dict[Path, Path]], missing: list[stubs.Stub]
) -> Iterator[list[str]]:
    version = f"-DHIPEMU_ROCM={rocm.number}"
    for objects in units.values():
        for source, target in objects.items():
            yield [cxx, *FLAGS, *_extra_flags(), version, "-c", str(source), "-o", str(target)]
    for stub in missing:
        source, target = work / "obj" / f"{stub.soname}.c", work / "obj" / f"{stub.soname}.o"
        source.write_text(stub.source)
        yield [cxx, "-x", "c", "-O1", "-fPIC", version, "-c", str(source), "-o", str(target)]


def _link_runtime(cxx: str, rocm: Rocm, work: Path, objects: dict[Path, Path]) -> None:
    apart = [] if rocm.compiler == rocm.runtime else [NATIVE / f"{unit}.cpp" for unit in HIPRTC]
    own = [target for source, target in objects.items() if source not in apart]
    _link(cxx, work, rocm.runtime, own, script=NATIVE / f"exports_rocm{rocm.number}.map")
    if apart:
        units = [objects[source] for source in (*apart, NATIVE / "process.cpp")]
        _link(cxx, work, rocm.compiler, units, on=rocm.runtime, script=NATIVE / "exports_hiprtc.map")


def _link_libraries(cxx: str, rocm: Rocm, work: Path, objects: dict[Path, Path], missing: list[stubs.Stub]) -> None:
    """Link each library of stand-ins, with the units of its name that serve some of its functions in earnest."""
    for stub in missing:
        script = work / "obj" / f"{stub.soname}.map"
        script.write_text(stub.script)
        served = [target for source, target in objects.items() if f"lib{source.stem.split('_')[0]}" == stub.name]
        _link(
            cxx,
            work,
            stub.soname,
            [work / "obj" / f"{stub.soname}.o", *served],
            on=rocm.runtime if served else None,
            script=script if stub.script else None,
        )


def _link(
    cxx: str, work: Path, soname: str, objects: list[Path], *, on: str | None = None, script: Path | None = None
) -> None:
    """Link a library, perhaps against another one of ours."""
    flags = ["-shared", "-pthread", f"-Wl,-soname,{soname}", "-Wl,-z,defs"]
    if script:
        flags.append(f"-Wl,--version-script={script}")
    needed = [str(work / "lib" / on)] if on else []
    target = str(work / "lib" / soname)
    _run([cxx, *_extra_flags(), *flags, "-o", target, *map(str, objects), *needed, "-ldl"])


def _extra_flags() -> list[str]:
    """Flags for a build to look for faults with, such as ``HIPEMU_CXXFLAGS="-fsanitize=undefined"``."""
    return os.environ.get("HIPEMU_CXXFLAGS", "").split()


def _run_all(commands: list[list[str]], quiet: bool) -> None:
    workers = max(1, min(4, os.cpu_count() or 1))
    with contextlib.closing(Progress(len(commands), quiet=quiet)) as progress:
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for future in concurrent.futures.as_completed([pool.submit(_run, command) for command in commands]):
                future.result()
                progress.step()


def _device_headers(work: Path, rocm: Rocm) -> None:
    """Copy what kernels include, and complete the flags that they are compiled with."""
    shutil.copytree(NATIVE / "device", work / "device")
    flags = work / "device" / "kernel_flags.txt"
    flags.write_text(f"{flags.read_text().strip()} -DHIPEMU_ROCM={rocm.number}\n")


def _precompilation(cxx: str, work: Path) -> list[str]:
    """Precompile what kernels include: half of a kernel's compile time."""
    flags = (work / "device" / "kernel_flags.txt").read_text().split()
    header = work / "device" / "hipemu_device.h"
    return [cxx, *flags, "-x", "c++-header", "-I", str(header.parent), str(header), "-o", f"{header}.gch"]


def _lay_out(work: Path) -> None:
    """Make the folder look like a ROCm installation, as far as CuPy looks."""
    rocm = work / "rocm"
    (rocm / "include").mkdir(parents=True)
    shutil.copytree(NATIVE / "rocm" / "bin", rocm / "bin")
    for tool in (rocm / "bin").iterdir():
        tool.chmod(0o755)
    os.symlink("../lib", rocm / "lib")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"building the emulated HIP device failed:\n$ {' '.join(command)}\n{done.stderr}")
