"""A bar only where it is wanted, where somebody looks, and never in the way."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from types import SimpleNamespace
from typing import Any

import pytest

from umarray import progress
from umarray.progress import VARIABLE, Bar, bar, length, wanted


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Called in the test's own body: pytest sets standard error anew after fixtures."""
    file = Terminal()
    monkeypatch.setattr(sys, "stderr", file)
    return file


def test_it_counts_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    with bar(3, "reading", unit="page") as shown:
        assert shown.inner.total == 3
        shown.update(2)
        shown.say("the last one")
        shown.update()
    text = terminal.getvalue()
    assert "reading: 100%" in text and "3/3" in text and "page" in text


def test_a_total_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    with bar(None, "reading", unit="page") as shown:
        shown.update()
    assert "1page" in terminal.getvalue()


def test_it_is_quiet_where_output_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (io.StringIO(), None, SimpleNamespace(isatty=lambda: 1 / 0)):
        monkeypatch.setattr(sys, "stderr", file)
        assert bar(3, "reading", unit="page").inner is None


def test_a_pipe_sees_nothing() -> None:
    code = "from umarray.progress import bar\nwith bar(2, 'reading', unit='page', asked=True) as b: b.update()"
    child = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("variable", "asked", "default", "shown"),
    [
        (None, None, True, True),
        (None, None, False, False),
        (None, True, False, True),
        (None, False, True, False),
        ("0", True, True, False),
        ("off", None, True, False),
        ("", True, True, False),
        ("1", None, False, True),
        ("1", False, True, False),
    ],
)
def test_the_environment_and_the_argument(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, asked: bool | None, default: bool, shown: bool
) -> None:
    if variable is not None:
        monkeypatch.setenv(VARIABLE, variable)
    assert wanted(asked, default=default) is shown


def test_without_tqdm_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # type: ignore[arg-type]
    assert bar(3, "reading", unit="page").inner is None


def test_a_notebook_is_no_terminal_and_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setattr(progress, "_in_a_kernel", lambda: True)
    with bar(3, "reading", unit="page") as shown:
        shown.update(3)
    assert "reading: 100%" in file.getvalue()


def test_a_bar_that_fails_is_dropped_and_the_work_goes_on() -> None:
    class Broken:
        def update(self, count: int) -> None:
            raise OSError("the terminal is gone")

    shown = Bar(Broken())
    shown.update()
    assert shown.inner is None
    shown.update()
    shown.close()


def test_a_terminal_that_breaks_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError("gone")

    monkeypatch.setattr(sys, "stderr", Gone())
    with bar(3, "reading", unit="page") as shown:
        shown.update(3)


def test_the_length_of_a_source() -> None:
    class Odd:
        def __len__(self) -> Any:
            return "three"

    assert length([1, 2]) == 2 and length(iter([1])) is None and length(Odd()) is None


def test_nothing_of_tqdm_is_imported_before_it_is_needed() -> None:
    code = "import umarray, umarray.progress, sys; assert 'tqdm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={**os.environ, "UMARRAY_MODE": "host"})


@pytest.mark.parametrize("size", [(24, 60), (0, 0), (0, 60)])
def test_a_real_terminal_shows_it_whatever_size_it_says_it_has(size: tuple[int, int]) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    code = "from umarray.progress import bar\nwith bar(2, 'reading', unit='page') as b: b.update(2)"
    try:
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60, stderr=theirs)
        assert b"reading: 100%" in os.read(ours, 10_000)
    finally:
        os.close(ours)
        os.close(theirs)
