"""Running all benchmarks: one that fails or hangs is told, and does not stop the others."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import run as module
from benchmarks.run import main, run_all, run_one
from umarray import drivers, hipemu
from umarray.drivers.host import HostDriver

GOOD = """
import json, os, sys
print(json.dumps({"benchmark": "good", "rows": [{}], "skipped": [], "options": sys.argv[1:],
                  "needed": os.environ.get("NEEDED")}))
"""
BAD = "import sys; print('half'); sys.exit('it broke\\n')"
ODD = "print('no JSON')"
SLOW = "import time; time.sleep(600)"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: Any) -> Path:
    """Benchmarks of our own, in a project of their own."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    for name, text in {"good": GOOD, "bad": BAD, "odd": ODD, "slow": SLOW, "emulated": GOOD}.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(module, "FOLDER", folder)
    monkeypatch.setattr(module, "RESULTS", folder / "results")
    monkeypatch.setattr(module, "NAMES", ("bad", "good", "emulated"))
    monkeypatch.setattr(module, "EMULATED_ONLY", {"emulated": {"NEEDED": "64"}})
    monkeypatch.setattr(hipemu, "active", lambda: False)
    return folder


@pytest.fixture(autouse=True)
def host() -> Any:
    before = drivers.set_driver(HostDriver(("a test wants it",)))
    yield
    drivers.set_driver(before)


def test_one_that_fails_does_not_stop_the_others() -> None:
    told = io.StringIO()
    found = run_all(["bad", "odd", "good"], ["--quick"], 60, told)
    assert [one["benchmark"] for one in found["results"]] == ["good"]
    assert found["results"][0]["options"] == ["--json", "--quick"]
    assert set(found["failed"]) == {"bad", "odd"} and found["failed"]["bad"] == "it broke"
    assert "JSON" in found["failed"]["odd"] and set(found["seconds"]) == {"bad", "odd", "good"}
    first, _, last = told.getvalue().splitlines()
    assert first.startswith("bad: FAILED after") and first.endswith("it broke") and last.startswith("good: 1 rows in")


@pytest.mark.watchdog(60)
def test_one_that_hangs_is_ended() -> None:
    assert run_one("slow", [], 0.5) == {"benchmark": "slow", "failed": "not done after 0.5 s"}


@pytest.mark.watchdog(60)
def test_one_that_is_interrupted_is_ended_too(monkeypatch: Any) -> None:
    made: list[Any] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            made.append(self)
            super().__init__(*args, **kwargs)

        def communicate(self, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("timeout") is not None:
                raise KeyboardInterrupt
            return super().communicate(*args, **kwargs)

    monkeypatch.setattr(module.subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_one("slow", [], 60)
    assert made[0].returncode is not None


def test_what_needs_the_emulated_device_is_skipped_elsewhere(monkeypatch: Any) -> None:
    told = io.StringIO()
    assert run_all(["emulated"], [], 60, told)["skipped"] == {"emulated": "on the emulated device only"}
    assert told.getvalue() == "emulated: skipped, on the emulated device only\n"
    monkeypatch.setattr(hipemu, "active", lambda: True)
    found = run_all(["emulated", "good"], [], 60, told)
    assert found["skipped"] == {} and [one["needed"] for one in found["results"]] == ["64", None]


def test_one_results_file_and_an_exit_code(files: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["run", "--save", "--json"])
    assert main() == 1
    out, err = capsys.readouterr()
    saved = json.loads((files / "results" / "all-host.json").read_text())
    assert saved == json.loads(out)
    assert saved["failed"] == {"bad": "it broke"} and [one["benchmark"] for one in saved["results"]] == ["good"]
    assert "failed: bad" in err and saved["header"]["mode"] == "host"


def test_only_those_that_are_named(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["run", "--only", "good", "--quick", "--repetitions", "3"])
    assert main() == 0
    assert capsys.readouterr().err.startswith("good: 1 rows")


@pytest.mark.parametrize("options", [["--only", "nonsense"], ["--save", "--quick"]])
def test_nonsense_is_refused(options: list[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["run", *options])
    with pytest.raises(SystemExit):
        main()
