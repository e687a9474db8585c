"""Escapes."""

from __future__ import annotations

from tests.observe.findings.made_up import BASE, case, named
from umarray.observe.facts import Escaped, Made
from umarray.observe.findings.escapes import find


def test_one_finding_for_a_line() -> None:
    escapes = [Escaped("a.py:3", 2, 200, "step"), Escaped("a.py:3", 1, 100, "last"), Escaped("b.py:1", 1, 8, "step")]
    made = [Made(0.1, BASE, 100, "a.py:3", name="y")]
    first, second = find(case(escapes=escapes, made=made, arrays=[named("kept[0]", 0, 0)]))
    assert first.evidence == {"arrays": 3, "escaped bytes": 300, "epochs": 2, "held by": "kept[0]"}
    assert first.remedy.startswith("del kept[0] ") and first.saving_bytes == 300
    assert first.subject is not None and (first.subject.name, first.subject.line) == ("y", "a.py:3")
    assert second.remedy.startswith("del x ")


def test_none_without_escapes() -> None:
    assert find(case()) == []
