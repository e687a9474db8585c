"""Stored calibrations: their place and key, damage, other processes, folders that cannot be written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray import log
from umarray.calibration import store
from umarray.calibration.defaults import defaults
from umarray.calibration.figures import Calibration

KEY = {"device": "0", "name": "A Card / 5", "umarray": "1"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UMARRAY_CACHE", str(tmp_path / "cache"))
    log.forget()


@pytest.fixture
def found(fake: FakeDriver) -> Calibration:
    return replace(defaults(fake, 0), measured=True, seconds=1.0)


def test_what_is_saved_is_loaded_and_nothing_else_is_left(found: Calibration) -> None:
    assert store.load(KEY) is None
    path = store.save(KEY, found)
    assert path is not None and store.load(KEY) == found
    assert [one.name for one in path.parent.iterdir()] == [path.name] and path.name.startswith("a-card-5-0-")


@pytest.mark.parametrize("name", ["device", "name", "umarray"])
def test_another_device_or_version_has_another_file(found: Calibration, name: str) -> None:
    store.save(KEY, found)
    assert store.load({**KEY, name: "other"}) is None


def test_the_key_has_the_device_and_all_versions(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "versions", lambda: {"cupy": "14.2.0", "runtime": "13.0", "driver": "13.0"})
    key = store.key_of(fake, 0)
    assert (key["name"], key["cupy"], key["mode"], key["umarray"]) == ("Fake", "14.2.0", "managed", store.__version__)


DAMAGE: dict[str, Callable[[str], str | bytes]] = {
    "empty": lambda text: "",
    "cut": lambda text: text[: len(text) // 2],
    "another format": lambda text: text.replace('"format": 1', '"format": 99'),
    "no object": lambda text: "[1, 2]",
    "of another card": lambda text: text.replace("A Card / 5", "B"),
    "not measured": lambda text: text.replace('"measured": true', '"measured": false'),
    "negative": lambda text: text.replace("[\n      1,", "[\n      -1,").replace("0.0", "-1.0"),
    "binary": lambda text: b"\xff\xfe\x00",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_or_foreign_file_is_ignored_with_one_warning(
    found: Calibration, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = store.save(KEY, found)
    assert path is not None
    changed = DAMAGE[damage](path.read_text())
    path.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
    assert store.load(KEY) is None and store.load(KEY) is None
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1 and "ignored" in warnings[0].getMessage()


def test_a_folder_that_cannot_be_written_is_a_warning(
    found: Calibration, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UMARRAY_CACHE", str(tmp_path / "file"))
    assert store.save(KEY, found) is None and "holds for this process only" in caplog.text
    assert store.load(KEY) is None
    with store.alone():
        pass


def test_a_failing_write_leaves_the_old_file_and_no_other(found: Calibration, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store.save(KEY, found)
    assert path is not None

    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dump", fail)
    assert store.save(KEY, replace(found, seconds=9.0)) is None
    monkeypatch.undo()
    assert json.loads(path.read_text())["calibration"]["seconds"] == 1.0
    assert list(path.parent.iterdir()) == [path]


def test_the_folder_by_the_xdg_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("UMARRAY_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    for platformdirs in (None, sys.modules.get("platformdirs")):
        if platformdirs is None:
            monkeypatch.setitem(sys.modules, "platformdirs", None)
        else:
            monkeypatch.setitem(sys.modules, "platformdirs", platformdirs)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert store.folder() == tmp_path / "xdg" / "umarray" / "calibration"
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert store.folder() == tmp_path / ".cache" / "umarray" / "calibration"
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert store.folder() == tmp_path / ".cache" / "umarray" / "calibration"


_OTHER = """
import fcntl
from umarray.calibration import store
with open(store.folder() / "lock", "a") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("held")
    else:
        print("free")
"""


@pytest.mark.watchdog(60)
def test_one_process_measures_at_a_time() -> None:
    def other() -> str:
        child = subprocess.run([sys.executable, "-c", _OTHER], capture_output=True, text=True, timeout=50)
        return child.stdout + child.stderr

    with store.alone():
        assert other() == "held\n"
    assert other() == "free\n"
    with pytest.raises(KeyError), store.alone():
        raise KeyError
    assert other() == "free\n"
