"""What the first build shows."""

from __future__ import annotations

import io
import sys

import pytest

from umarray.hipemu.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, file: io.StringIO, *, quiet: bool = False) -> str:
    monkeypatch.setattr(sys, "stderr", file)
    progress = Progress(2, quiet=quiet)
    progress.step()
    progress.step()
    progress.close()
    return file.getvalue()


LINE = "hipemu: building the emulated HIP device (once for each version)\n"


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UMARRAY_PROGRESS", raising=False)
    text = shown(monkeypatch, Terminal())
    assert text.startswith(LINE) and "hipemu: 100%" in text and "2/2" in text and text.endswith("\n")


def test_a_count_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UMARRAY_PROGRESS", raising=False)
    monkeypatch.setitem(sys.modules, "tqdm", None)  # type: ignore[arg-type]
    assert shown(monkeypatch, Terminal()) == LINE + "\rhipemu: 1/2\rhipemu: 2/2\n"


def test_only_the_line_elsewhere_and_where_it_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO()) == LINE
    monkeypatch.setenv("UMARRAY_PROGRESS", "0")
    assert shown(monkeypatch, Terminal()) == LINE


def test_nothing_at_all_if_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Terminal(), quiet=True) == ""


def test_a_terminal_that_breaks_does_not_end_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Terminal):
        broken = False

        def write(self, text: str) -> int:
            if self.broken:
                raise OSError("gone")
            return super().write(text)

    file = Broken()
    monkeypatch.setattr(sys, "stderr", file)
    progress = Progress(2, quiet=False)
    file.broken = True
    progress.step()
    progress.close()
