"""Warnings in the log: one line, once, seen by default; nothing else is."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from umarray import log


def test_a_thing_is_told_once_and_its_traceback_at_debug_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "umarray")
    for _ in range(2):
        try:
            raise OSError("100% lost:\nall of it")
        except OSError as error:
            log.warn_once("page %d did not move", 7, error=error)
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    line = "umarray: page 7 did not move: OSError: 100% lost: all of it"
    assert [one for one in told if one[1] == line] == [("WARNING", line), ("DEBUG", line)]
    traces = [record for record in caplog.records if record.exc_info]
    assert len(traces) == 2 and {record.levelname for record in traces} == {"DEBUG"}


def test_what_it_is_about_makes_it_another_thing(caplog: pytest.LogCaptureFixture) -> None:
    for line in ("a.py:1", "a.py:1", "b.py:2"):
        log.warn_once("lost at %s", line, about=line)
    log.warn_once("100% sure")
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING] == [
        "umarray: lost at a.py:1",
        "umarray: lost at b.py:2",
        "umarray: 100% sure",
    ]


def run(code: str) -> str:
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert child.stdout == ""
    return child.stderr


TELL = """
from umarray import events, log
def broken(record):
    raise ValueError("not today")
for _ in range(2):
    stop = events.listen(broken)
    events.emit(events.Waited(0.0, "a test"))
    log.log.info("not for everyone")
"""


def test_a_program_that_set_up_no_logging_sees_warnings_and_nothing_else() -> None:
    err = run(TELL)
    assert err.count("\n") == 1 and err.startswith("umarray: ") and "ValueError: not today" in err


def test_it_can_be_silenced() -> None:
    assert run("import logging; logging.getLogger('umarray').setLevel('ERROR')" + TELL) == ""


def test_a_program_that_set_up_logging_gets_it_its_own_way() -> None:
    err = run("import logging; logging.basicConfig(format='%(name)s|%(levelname)s|%(message)s')" + TELL)
    assert err.startswith("umarray|WARNING|umarray: ") and err.count("\n") == 1
