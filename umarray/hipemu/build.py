"""Builds the emulator's libraries with g++, once for each state of the sources, into a cache folder."""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import stubs

__all__ = ["BuildError", "cache_folder", "compiler", "library_folder"]

NATIVE = Path(__file__).parent / "native"
FLAGS = ["-std=c++17", "-O2", "-g1", "-fPIC", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra"]
RUNTIME = "libamdhip64.so.5"
PRELOAD = "libhipemu_wheel.so"


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


def library_folder(*, quiet: bool = False) -> Path:
    """Return the folder of a finished build of these sources, building it first if need be.

    Parameters
    ----------
    quiet : bool
        Print nothing on stderr while building.

    Notes
    -----
    Safe for any number of processes at once: one builds under a lock, the others wait for it. The folder appears
    under its name only when it is whole.
    """
    cxx = compiler()
    folder = cache_folder() / _digest(cxx)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / f"{folder.name}.lock"):
            if not folder.is_dir():
                _build(cxx, folder, quiet)
    return folder


def sources() -> list[Path]:
    """Return every file that a build depends on."""
    return sorted(p for p in NATIVE.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def _digest(cxx: str) -> str:
    version = subprocess.run([cxx, "--version"], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256(version.encode())
    digest.update(repr([*FLAGS, *_extra_flags()]).encode())
    for extra in (Path(__file__), Path(stubs.__file__)):
        digest.update(extra.read_bytes())
    for path in sources():
        digest.update(str(path.relative_to(NATIVE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(cxx: str, folder: Path, quiet: bool) -> None:
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        (work / "lib").mkdir()
        (work / "obj").mkdir()
        runtime = _objects(work, sorted(NATIVE.glob("*.cpp")))
        libraries = _objects(work, sorted((NATIVE / "libraries").glob("*.cpp")))
        preload = _objects(work, sorted((NATIVE / "preload").glob("*.cpp")))
        jobs = [_compilation(cxx, s, t) for units in (runtime, libraries, preload) for s, t in units.items()]
        missing: dict[str, Path] = {}
        for soname, text in stubs.generate(NATIVE / "symbols" / "rocm5"):
            source = work / "obj" / f"{soname}.c"
            source.write_text(text)
            missing[soname] = source.with_suffix(".o")
            jobs.append([cxx, "-x", "c", "-O1", "-fPIC", "-c", str(source), "-o", str(missing[soname])])
        _device_headers(work)
        jobs.append(_precompilation(cxx, work))
        _run_all(jobs, quiet)
        script = NATIVE / "exports_rocm5.map"
        library = work / "lib" / RUNTIME
        _run(
            [
                cxx,
                *_extra_flags(),
                "-shared",
                "-pthread",
                f"-Wl,-soname,{RUNTIME}",
                f"-Wl,--version-script={script}",
                "-Wl,-z,defs",
                "-o",
                str(library),
                *map(str, runtime.values()),
                "-ldl",
            ]
        )
        for soname, stub in missing.items():
            name = soname.removeprefix("lib").split(".")[0]
            own = [str(target) for source, target in libraries.items() if source.stem.split("_")[0] == name]
            _run(
                [
                    cxx,
                    *_extra_flags(),
                    "-shared",
                    "-pthread",
                    f"-Wl,-soname,{soname}",
                    "-Wl,-z,defs",
                    "-o",
                    str(work / "lib" / soname),
                    str(stub),
                    *own,
                    *([str(library), "-ldl"] if own else []),
                ]
            )
        wheel = ["-o", str(work / "lib" / PRELOAD), *map(str, preload.values()), "-ldl"]
        _run([cxx, *_extra_flags(), "-shared", f"-Wl,-soname,{PRELOAD}", "-Wl,-z,defs", *wheel])
        _lay_out(work)
        shutil.rmtree(work / "obj")
        os.rename(work, folder)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def _objects(work: Path, units: list[Path]) -> dict[Path, Path]:
    return {unit: work / "obj" / f"{unit.parent.name}-{unit.stem}.o" for unit in units}


def _compilation(cxx: str, source: Path, target: Path) -> list[str]:
    return [cxx, *FLAGS, *_extra_flags(), "-c", str(source), "-o", str(target)]


def _extra_flags() -> list[str]:
    """Flags for a build to look for faults with, such as ``HIPEMU_CXXFLAGS="-fsanitize=undefined"``."""
    return os.environ.get("HIPEMU_CXXFLAGS", "").split()


def _run_all(commands: list[list[str]], quiet: bool) -> None:
    workers = max(1, min(4, os.cpu_count() or 1))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        pending = [pool.submit(_run, command) for command in commands]
        for n, future in enumerate(concurrent.futures.as_completed(pending), 1):
            future.result()
            if not quiet:
                _progress(n, len(pending))


def _device_headers(work: Path) -> None:
    shutil.copytree(NATIVE / "device", work / "device")


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


def _progress(done: int, total: int) -> None:
    if done == 1:
        print("hipemu: building the emulated HIP device (once for each version)", file=sys.stderr)
    if sys.stderr.isatty():
        print(f"\rhipemu: {done}/{total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
