"""``python -m umarray emulate``: bad input is code 2 and one clear error; what the command does is passed on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.needs import in_ci
from umarray import cli

PROGRAM = """
import sys
from umarray import hipemu
print(hipemu.active(), hipemu.page_bytes(), *sys.argv[1:])
"""


def _refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as caught:
        cli.main(["emulate", *arguments])
    out = capsys.readouterr()
    assert (caught.value.code, out.out) == (2, "")
    return out.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--profile", "rtx"], "profile: 'rtx' (wanted one of mi210"),
        (["--memory", "0"], "memory: '0' (wanted at least 16 pages, 1048576 bytes)"),
        (["--memory", "0.5KiB"], "memory: '0.5KiB' (wanted at least"),
        (["--memory", "999TiB"], "memory: '999TiB' (wanted at most"),
        (["--devices", "8", "--memory", "512GiB"], "memory: '512GiB' (wanted at most"),
        (["--memory", "lots"], "not a size: 'lots' (wanted for example 256MiB)"),
        (["--memory", "nan"], "not a size: 'nan'"),
        (["--page", "48KiB"], "page: '48KiB' (wanted a power of two of at least 4KiB)"),
        (["--page", "2KiB"], "page: '2KiB' (wanted a power of two"),
        (["--page", "0"], "page: '0' (wanted a power of two"),
        (["--devices", "0"], "devices: 0 (wanted 1 to 8)"),
        (["--devices", "9"], "devices: 9 (wanted 1 to 8)"),
        (["--devices", "two"], "argument --devices: invalid int value: 'two'"),
        (["--rocm", "6"], "rocm: '6' (wanted 5 or 7)"),
        (["--xnack", "maybe"], "argument --xnack: invalid choice: 'maybe'"),
        (["--trace", "/nowhere/trace"], "trace: '/nowhere/trace' (No such file or directory)"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_a_bad_setting_is_code_2_and_named(
    options: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("umarray.hipemu.build.library_folder", lambda *_, **how: pytest.fail("the emulator was built"))
    monkeypatch.setattr("os.execvpe", lambda *how: pytest.fail("the command was run"))
    error = _refused([*options, "--", "python"], capsys)
    assert error.startswith("usage: python -m umarray emulate [options] -- command") and told in error


@pytest.mark.parametrize("arguments", [[], ["--"], ["--report"], ["--devices", "2", "--"]])
def test_no_command_is_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "no command: put it after --" in _refused(arguments, capsys)


def test_no_compiler_is_code_2_and_names_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HIPEMU_CXX", "no-such-compiler")
    assert "install the package g++" in _refused(["--", "python"], capsys)


# What follows builds the emulator, at its first run.
needs_compiler = pytest.mark.skipif(
    bool(os.environ.get("HIPEMU")) or not (in_ci() or shutil.which(os.environ.get("HIPEMU_CXX", "g++"))),
    reason="there is no C++ compiler, or this process is emulated already",
)


def emulate(*arguments: str, environment: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "umarray", "emulate", *arguments],
        cwd=Path(__file__).resolve().parent.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def run(program: str, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return emulate(*options, "--", sys.executable, "-c", program, *arguments)


pytestmark = pytest.mark.watchdog(600)  # the first build


@needs_compiler
def test_options_reach_the_machine_and_arguments_the_program() -> None:
    done = run(PROGRAM, "--", "--devices", "x y", options=("--page", "128KiB", "--memory", "256MiB"))
    assert (done.returncode, done.stdout) == (0, "True 131072 -- --devices x y\n"), done.stderr


@needs_compiler
def test_the_program_s_exit_code_is_passed_on() -> None:
    assert run("raise SystemExit(41)").returncode == 41


@needs_compiler
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_that_ends_the_program_is_passed_on(number: signal.Signals) -> None:
    assert run(f"import os; os.kill(os.getpid(), {int(number)})").returncode == -number


@needs_compiler
def test_a_signal_to_the_command_reaches_the_program() -> None:
    program = "import signal, sys; signal.signal(15, lambda *_: sys.exit(9)); print('up', flush=True); signal.pause()"
    child = subprocess.Popen(
        [sys.executable, "-m", "umarray", "emulate", "--", sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    child.terminate()
    assert child.wait(60) == 9
    child.stdout.close()


@needs_compiler
def test_a_command_that_is_not_there_is_code_127() -> None:
    done = emulate("--", "no-such-command", "-x")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr.splitlines()[-1] == "hipemu: cannot run no-such-command: No such file or directory"


USES_THE_DEVICE = """
import ctypes
from umarray.hipemu import rocm
ctypes.CDLL(rocm.choose().runtime).hipDeviceSynchronize()
"""


@needs_compiler
def test_a_trace_is_written_where_asked(tmp_path: Path) -> None:
    trace = tmp_path / "calls"
    assert run(USES_THE_DEVICE, options=("--trace", str(trace))).returncode == 0
    assert "hipDeviceSynchronize" in trace.read_text()


@needs_compiler
def test_a_report_is_printed_at_the_end() -> None:
    done = run(USES_THE_DEVICE, options=("--report", "--devices", "2"))
    assert (done.returncode, done.stdout) == (0, "")
    assert "device 1" in done.stderr and "modelled" in done.stderr
