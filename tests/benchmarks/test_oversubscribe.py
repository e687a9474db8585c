"""benchmarks/oversubscribe.py: refused but on the emulated device; there its counts are exact."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import oversubscribe
from tests.needs import missing_for_emulation
from umarray.hipemu import PROFILES

PAGES = 64  # of the emulated device
CHUNK = PAGES // oversubscribe.CHUNKS


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", *command],
        cwd=Path(__file__).parents[2],
        env={name: value for name, value in os.environ.items() if not name.startswith("UMARRAY_")},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_it_is_refused_where_the_device_is_not_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIPEMU", raising=False)
    monkeypatch.setattr(oversubscribe, "get_driver", lambda: pytest.fail("a driver was chosen"))
    monkeypatch.setattr(sys, "argv", ["oversubscribe", "--nonsense"])
    with pytest.raises(SystemExit, match="python -m umarray emulate --memory 64MiB -- "):
        oversubscribe.main()


def measured(*machine: str) -> dict[tuple[str, str], dict[str, Any]]:
    if missing_for_emulation():
        pytest.skip(missing_for_emulation())
    here = [sys.executable, "-W", "error", "-m", "benchmarks.oversubscribe", "--quick", "--json"]
    done = run("umarray", "emulate", "--memory", "4MiB", *machine, "--", *here)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["benchmark"], result["header"]["mode"]) == ("oversubscribe", "managed")
    return {(row["case"].split(" x ")[0], row["variant"]): row for row in result["rows"]}


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], dict[str, Any]]:
    return measured()


PASSES = 2  # with --quick


@pytest.mark.watchdog(600)  # the first run builds the emulator
@pytest.mark.parametrize("variant", oversubscribe.VARIANTS)
def test_what_fits_moves_once(rows: Any, variant: str) -> None:
    row = rows["0.5", variant]
    assert row["device_faults"] == (0 if "umarray" in variant else PAGES // 2)
    assert (row["evictions"], row["to_device_mib"], row["to_host_mib"]) == (0, 2.0, 0)
    assert row["of_it_prefetched_mib"] == (2.0 if "umarray" in variant else 0)


@pytest.mark.watchdog(600)
def test_what_does_not_fit_is_pushed_out_by_faults_and_by_no_scope(rows: Any) -> None:
    touched = PASSES * PAGES * 3 // 2
    plain, advised = rows["1.5", "plain"], rows["1.5", "advised"]
    passing, staying = rows["1.5", "umarray, all pass"], rows["1.5", "umarray, a part stays"]
    scratch = 1  # page of the device that is taken
    assert plain["device_faults"] == advised["device_faults"] == touched
    assert plain["evictions"] == advised["evictions"] == touched - PAGES + scratch
    assert plain["to_host_mib"] * 16 == plain["evictions"]  # pages of 64 KiB
    assert advised["to_host_mib"] == 0  # copies are dropped
    for row in (passing, staying):
        assert (row["device_faults"], row["evictions"]) == (0, 0)
    assert passing["to_device_mib"] * 16 == passing["to_host_mib"] * 16 == touched
    kept = oversubscribe.KEPT * CHUNK
    assert staying["to_host_mib"] * 16 == touched - PASSES * kept
    assert staying["to_device_mib"] * 16 == touched - (PASSES - 1) * kept
    assert staying["modelled_ms"] < passing["modelled_ms"] < plain["modelled_ms"]


MIGRATING = [profile for profile in PROFILES if profile != "mi300a"]  # one memory: nothing moves


@pytest.mark.watchdog(600)
@pytest.mark.parametrize("profile", MIGRATING)
def test_on_every_card_scopes_leave_a_fifth_of_the_faults_at_most(profile: str) -> None:
    rows = measured("--profile", profile)
    for factor in ("1", "1.5"):
        plain = rows[factor, "plain"]
        for variant in ("umarray, all pass", "umarray, a part stays"):
            scoped = rows[factor, variant]
            assert plain["device_faults"] >= PAGES * PASSES
            assert 5 * scoped["device_faults"] <= plain["device_faults"]
            assert scoped["evictions"] <= plain["evictions"]


@pytest.mark.watchdog(600)
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--xnack", "off"], "pages migrate"),
        (["--profile", "mi300a"], "pages migrate"),
        (["--memory", "2GiB"], "the device has 2.0 GiB"),
        (["--memory", "4160KiB"], "multiple of 16 pages"),
    ],
)
def test_a_machine_that_cannot_show_it_is_refused(options: list[str], told: str) -> None:
    if missing_for_emulation():
        pytest.skip(missing_for_emulation())
    done = run("umarray", "emulate", *options, "--", sys.executable, "-m", "benchmarks.oversubscribe", "--quick")
    assert done.returncode == 1 and told in done.stderr
    assert done.stdout == ""
