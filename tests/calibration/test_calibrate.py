"""um.calibrate and `umarray calibrate`: measured once, stored, forced; bad arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray import cli, drivers
from umarray.calibration import current
from umarray.calibration import measure as measuring
from umarray.drivers.host import HostDriver
from umarray.places import HOST


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UMARRAY_CACHE", str(tmp_path))
    monkeypatch.setattr(measuring, "SIZES", (4096, 1 << 20))
    monkeypatch.setattr(measuring, "SLOTS", (1 << 20,))
    monkeypatch.setattr(measuring, "REPETITIONS", 1)


def test_it_measures_once_and_then_reads_what_was_stored(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake()
    assert not current().measured
    first = um.calibrate()
    assert first.measured and current() is first
    calls = fake.count("traverse")
    assert calls and um.calibrate() == first and fake.count("traverse") == calls
    another = make_fake()  # another process, as it were
    assert um.calibrate() == first and not another.count("traverse")
    assert um.calibrate(force=True) is current() and another.count("traverse") == calls


def test_what_an_emulated_device_takes_decides_nothing(
    make_fake: Callable[..., FakeDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = make_fake()
    original = fake.traits
    monkeypatch.setattr(fake, "traits", lambda device: replace(original(device), name="A Card (emulated)"))
    assert um.calibrate().measured and not current().measured
    again = make_fake()
    monkeypatch.setattr(again, "traits", fake.traits)
    assert not current().measured


def test_each_device_has_its_own(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(devices=2)
    um.calibrate(1)
    assert current(1).measured and not current(0).measured
    assert {call.device for call in fake.named("traverse")} == {1}


def test_another_process_that_measured_meanwhile_is_believed(
    make_fake: Callable[..., FakeDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_fake()
    first = um.calibrate()
    fake, module = make_fake(), __import__("importlib").import_module("umarray.calibration.calibrate")
    answers = iter([None, first])
    monkeypatch.setattr(module.store, "load", lambda key: next(answers))
    assert um.calibrate() is first and not fake.count("traverse")


@pytest.mark.parametrize(("bad", "error"), [(HOST, ValueError), (7, ValueError), ("gpu", ValueError), (1.5, TypeError)])
def test_what_is_no_device_is_refused(fake: FakeDriver, bad: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        um.calibrate(bad)
    with pytest.raises(TypeError, match="force"):
        um.calibrate(force=1)  # type: ignore[arg-type]
    assert not fake.count("allocate")


def test_on_the_host_there_is_nothing_to_measure() -> None:
    before = drivers.set_driver(HostDriver(("a test",)))
    try:
        found = um.calibrate(force=True)
    finally:
        drivers.set_driver(before)
    assert not found.measured and "nothing is measured" in str(found) and "a test" in str(found)


def test_the_command_prints_what_was_found(fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["calibrate"]) == 0
    out = capsys.readouterr()
    assert out.out.startswith("calibration of Fake: measured in ") and out.err == ""
    calls = fake.count("traverse")
    assert cli.main(["calibrate", "--json", "--device", "0"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["device"] == "Fake" and values["measured"] and fake.count("traverse") == calls
    assert cli.main(["calibrate", "--force"]) == 0 and fake.count("traverse") == 2 * calls


@pytest.mark.parametrize(
    ("arguments", "quoted"),
    [
        (["--device", "x"], "'x'"),
        (["--device", "-1"], "-1"),
        (["--nonsense"], "--nonsense"),
        (["--device"], "--device"),
    ],
)
def test_bad_usage_is_code_2(fake: FakeDriver, capsys: Any, arguments: list[str], quoted: str) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["calibrate", *arguments])
    out = capsys.readouterr()
    assert caught.value.code == 2 and out.out == "" and quoted in out.err


def test_a_device_that_is_not_there_is_one_line(fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["calibrate", "--device", "7"]) == 2
    out = capsys.readouterr()
    assert out.out == "" and out.err == "umarray: there is no device 7: this process sees only device 0\n"


def test_no_room_is_one_line(make_fake: Callable[..., FakeDriver], capsys: pytest.CaptureFixture[str]) -> None:
    make_fake(capacity=1 << 20)
    assert cli.main(["calibrate"]) == 1
    assert "calibrating needs buffers" in capsys.readouterr().err
