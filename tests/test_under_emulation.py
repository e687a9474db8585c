"""Runs the tests in child processes on emulated machines, where a ROCm wheel of CuPy and a C++ compiler are here.

Under CI (``CI=true``) what is missing is a failure; elsewhere it is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import in_ci, missing_for_emulation

MISSING = missing_for_emulation()
pytestmark = [pytest.mark.host_mode, pytest.mark.skipif(bool(MISSING) and not in_ci(), reason=MISSING)]

_FILES = ("driver", "scopes", "host_view", "cupy_pool", "effects", "watch", "findings", "intent", "pipeline")
HARDWARE = [f"tests/emulated/test_{name}.py" for name in _FILES]
MACHINES: dict[str, tuple[list[str], list[str], dict[str, str]]] = {
    "every test": ([], ["tests"], {}),  # but for those that are tied to the host mode
    "two devices": (["--devices", "2"], HARDWARE, {}),
    "little memory": (["--memory", "16MiB"], ["tests/emulated/test_intent.py"], {}),  # some of it needs more than fits
    "no page faults": (["--xnack", "off"], HARDWARE, {}),
    "one memory": (["--profile", "mi300a"], HARDWARE, {}),
    "no userfaultfd": (["--devices", "2"], HARDWARE, {"HIPEMU_FAULTS": "mprotect"}),  # as in most containers
}


@pytest.mark.watchdog(1200)  # the first run builds the emulator, and kernels are compiled
@pytest.mark.parametrize("machine", MACHINES)
def test_on_an_emulated_machine(machine: str, repository: Path) -> None:
    assert not MISSING, MISSING
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
