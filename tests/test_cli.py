"""The command line: what it prints, where, and with which exit code; no traceback for what is the user's to mend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray import cli, drivers
from umarray.errors import BrokenInstallation, NotSupported


def test_info_is_the_report(fake: FakeDriver, capsys: Any) -> None:
    assert cli.main(["info"]) == 0
    out = capsys.readouterr()
    assert out.out.startswith("mode      managed\n") and out.err == ""


def test_info_as_json_is_one_object(fake: FakeDriver, capsys: Any) -> None:
    assert cli.main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["driver"] == "fake"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BrokenInstallation("libamdhip64.so.5 is\n not there"), 1),
        (NotSupported("managed is not possible"), 1),
        (ValueError("UMARRAY_MODE='x' is no mode"), 2),
    ],
)
def test_an_error_is_one_line(monkeypatch: Any, capsys: Any, error: Exception, code: int) -> None:
    def fail() -> Any:
        raise error

    monkeypatch.setattr(cli, "get_driver", fail)
    assert cli.main(["info"]) == code
    out = capsys.readouterr()
    assert out.out == "" and out.err == f"umarray: {' '.join(str(error).split())}\n"


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["info", "--nonsense"], ["demo", "--epochs", "0"]])
def test_bad_usage_is_code_2_on_the_standard_error(arguments: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    out = capsys.readouterr()
    assert out.out == "" and "usage:" in out.err


@pytest.mark.parametrize(
    "help_of",
    [["--help"], ["info", "--help"], ["demo", "--help"], ["calibrate", "--help"], ["emulate", "--help"], ["--version"]],
)
def test_help_needs_no_device(help_of: list[str], monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(drivers, "choose_driver", lambda: pytest.fail("a driver was chosen"))
    with pytest.raises(SystemExit) as caught:
        cli.main(help_of)
    assert caught.value.code == 0 and capsys.readouterr().out


def test_demo_runs_the_demo_with_its_arguments(fake: FakeDriver, monkeypatch: Any) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("umarray.demo.run", lambda arguments: seen.append(arguments) or 5)
    assert cli.main(["demo", "--epochs", "2"]) == 5
    assert seen[0].epochs == 2


def test_emulate_hands_all_that_follows_to_the_emulator_before_a_driver_is_chosen(monkeypatch: Any) -> None:
    seen: list[Any] = []

    def run(*arguments: Any, **settings: Any) -> None:
        seen.append((arguments, settings))
        raise SystemExit(7)

    monkeypatch.setattr("umarray.hipemu.command.main", run)
    monkeypatch.setattr(cli, "get_driver", lambda: pytest.fail("a driver was chosen"))
    with pytest.raises(SystemExit) as caught:
        cli.main(["emulate", "--report", "--", "python", "--version"])
    assert caught.value.code == 7
    assert seen == [((["--report", "--", "python", "--version"],), {"prog": "python -m umarray emulate"})]


@pytest.mark.parametrize(("mode", "code"), [("host", 0), ("bogus", 2)])
def test_as_a_program(mode: str, code: int, repository: Any) -> None:
    child = subprocess.run(
        [sys.executable, "-W", "error", "-m", "umarray", "info"],
        cwd=repository,
        env={**os.environ, "UMARRAY_MODE": mode},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert child.returncode == code, child.stderr
    if mode == "host":
        assert child.stdout.startswith("mode      host\n") and child.stderr == ""
    else:
        assert child.stdout == "" and child.stderr.count("\n") == 1 and "'bogus'" in child.stderr


def test_a_reader_that_has_had_enough_is_no_error_to_tell() -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as gone:
        child = subprocess.run(
            [sys.executable, "-m", "umarray", "info"],
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env={**os.environ, "UMARRAY_MODE": "host", "PYTHONUNBUFFERED": "1"},
        )
    assert (child.returncode, child.stderr) == (1, "")


@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_full_disk_is_one_line(buffered: str) -> None:
    with open("/dev/full", "w") as full:
        child = subprocess.run(
            [sys.executable, "-m", "umarray", "info"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env={**os.environ, "UMARRAY_MODE": "host", "PYTHONUNBUFFERED": buffered},
        )
    assert child.returncode == 1 and child.stderr.count("\n") == 1 and "No space left" in child.stderr
