"""The demo and the examples on a device, without a changed line; the card and the emulated device subclass this."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from umarray.drivers.base import Driver, Mode

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def ran(*command: object) -> str:
    """What a child Python printed; it must end well and complain of nothing."""
    child = subprocess.run(
        [sys.executable, "-W", "error", *map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert (child.returncode, child.stderr) == (0, ""), child.stdout + child.stderr
    return child.stdout


class ProgramsContract:
    EPOCHS = 10

    @pytest.mark.watchdog(600)
    @pytest.mark.parametrize("transport", ["auto", "managed", "staged"])
    def test_the_demo(self, driver: Driver, transport: str) -> None:
        if transport == "managed" and driver.mode is not Mode.MANAGED:
            pytest.skip("this device cannot migrate")
        results = json.loads(ran("-m", "umarray", "demo", "--json", "--epochs", self.EPOCHS, "--transport", transport))
        assert (results["mode"], results["driver"]) == (driver.mode.value, driver.name)
        assert transport in ("auto", results["transport"])
        assert results["max_abs_difference"] <= 1e-4
        assert abs(results["accuracy"] - results["reference_accuracy"]) < 0.01
        assert results["driver_allocations_after_first_epoch"] == 0 and results["escapes"] == 0
        assert results["peak_bytes"] > 512 * 64 * 4  # a batch, cast to float32 on the device
        assert {"prep", "transfer", "compute"} <= results["stage_ms"].keys()
        moves = results["transport"] in ("staged", "managed")  # the others leave the bytes where they are
        assert all(results["stage_ms"][stage] > 0 for stage in ("prep", "compute", *(["transfer"] if moves else [])))

    @pytest.mark.watchdog(600)
    @pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
    def test_an_example(self, script: Path) -> None:
        ran(script)
