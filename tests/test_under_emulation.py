"""Runs tests/emulated in child processes on emulated machines, where the ROCm wheel and a C++ compiler are here."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def _missing() -> str:
    if os.environ.get("HIPEMU"):
        return "this process is emulated already"
    try:
        importlib.metadata.version("cupy-rocm-5-0")
    except importlib.metadata.PackageNotFoundError:
        return "the wheel cupy-rocm-5-0 is not installed"
    return "" if shutil.which(os.environ.get("CXX", "g++")) else "there is no C++ compiler"


pytestmark = pytest.mark.skipif(bool(_missing()), reason=_missing())

HARDWARE = [f"tests/emulated/test_{name}.py" for name in ("driver", "scopes", "host_view", "cupy_pool", "effects")]
MACHINES: dict[str, tuple[list[str], list[str], dict[str, str]]] = {
    "every test": ([], ["tests/emulated"], {}),
    "two devices": (["--devices", "2"], HARDWARE, {}),
    "no page faults": (["--xnack", "off"], HARDWARE, {}),
    "one memory": (["--profile", "mi300a"], HARDWARE, {}),
    "no userfaultfd": (["--devices", "2"], HARDWARE, {"HIPEMU_FAULTS": "mprotect"}),  # as in most containers
}


@pytest.mark.watchdog(1200)  # the first run builds the emulator, and kernels are compiled
@pytest.mark.parametrize("machine", MACHINES)
def test_on_an_emulated_machine(machine: str, repository: Path) -> None:
    options, paths, environ = MACHINES[machine]
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]
    child = subprocess.run(
        [sys.executable, "-m", "umarray.hipemu", "--page", "4KiB", *options, "--", *run],
        cwd=repository,
        env={name: value for name, value in os.environ.items() if not name.startswith("UMARRAY_")} | environ,
        capture_output=True,
        text=True,
        timeout=1100,
    )
    assert child.returncode == 0, child.stdout[-6000:] + child.stderr[-3000:]
    assert "passed" in child.stdout
