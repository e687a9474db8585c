"""Building and starting: settings, the command, first uses at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from umarray.hipemu import BuildError, build, environment, parse_size
from umarray.hipemu.command import main

from .conftest import ROOT, needs_emulator


def test_sizes() -> None:
    assert [parse_size(s) for s in ("64KiB", "1.5G", "2mb", "4096", 7)] == [65536, 3 << 29, 2 << 20, 4096, 7]
    for bad in ("", "12x", "-1", "KiB", "1 2"):
        with pytest.raises(ValueError, match="not a size"):
            parse_size(bad)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--profile", "rtx", "--", "true"],
        ["--memory", "0", "--", "true"],
        ["--memory", "9" * 400, "--", "true"],
        ["--page", "48KiB", "--", "true"],
        ["--devices", "9", "--", "true"],
        ["--xnack", "maybe", "--", "true"],
    ],
)
def test_a_bad_setting_is_code_2(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(options)
    assert caught.value.code == 2 and "error" in capsys.readouterr().err


def test_no_compiler_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPEMU_CXX", "no-such-compiler")
    with pytest.raises(BuildError, match="install the package g"):
        environment()


def test_a_build_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HIPEMU_CACHE", str(tmp_path))
    compiler = tmp_path / "cxx"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && echo 1 && exit\necho no room >&2\nexit 1\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("HIPEMU_CXX", str(compiler))
    with pytest.raises(BuildError, match="no room"):
        build.library_folder(quiet=True)
    assert sorted(p.suffix for p in tmp_path.iterdir()) == ["", ".lock"]


@pytest.mark.watchdog(600)
@needs_emulator
def test_first_uses_at_once_make_one_build(tmp_path: Path) -> None:
    program = "from umarray.hipemu import library_folder; print(library_folder())"
    command = [sys.executable, "-c", program]
    env = {"HIPEMU_CACHE": str(tmp_path), "PATH": __import__("os").environ["PATH"], "PYTHONPATH": str(ROOT)}
    children = [
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    told = [child.communicate(timeout=500) for child in children]
    assert len({out for out, _ in told}) == 1 and all(child.returncode == 0 for child in children)
    assert sum("building" in err for _, err in told) == 1
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == [Path(told[0][0].strip()).name]
