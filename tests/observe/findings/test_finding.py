"""What a finding says of itself, and how cases are accounted for."""

from __future__ import annotations

import json

import pytest

from tests.observe.findings.made_up import GPU, case, moved, named
from umarray.observe.findings.finding import Finding, claims, format_seconds, shown
from umarray.observe.subjects import Subject
from umarray.places import HOST

TABLE = Subject("table", "train.py:7", 4096, 4000, (10, 100), "float32")
FINDING = Finding(
    "on-demand faults", TABLE, "It came.", "with um.prefetch(table):", 2e-3, 1.5e-3, evidence={"faults": 7000}
)


def test_it_prints_what_where_how_much_and_what_to_do() -> None:
    assert str(FINDING).splitlines() == [
        "on-demand faults: table (float32[10, 100]), made at train.py:7",
        "  It came.",
        "  faults 7,000",
        "  remedy: with um.prefetch(table):",
        "  saves about 1.5 ms of 2.0 ms (modelled)",
    ]


def test_as_plain_values_it_goes_into_json() -> None:
    values = json.loads(json.dumps(FINDING.as_dict()))
    assert values["array"] == {
        "name": "table",
        "shape": [10, 100],
        "dtype": "float32",
        "nbytes": 4000,
        "line": "train.py:7",
        "count": 1,
    }
    assert (values["modelled"], values["saving_seconds"], values["evidence"]) == (True, 1.5e-3, {"faults": 7000})
    assert Finding("fragmentation", None, "", "").as_dict()["array"] is None


def test_it_says_whether_seconds_are_modelled_or_measured() -> None:
    assert (
        Finding("", None, "", "", 2.0, 1.0, modelled=False).saves == "1.00 s of 2.00 s (at most, of measured seconds)"
    )
    assert Finding("", None, "", "", saving_bytes=3 << 20).saves == "3.0 MiB of memory"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("held by", "kept[0]", "kept[0]"),
        ("moved bytes", 2048, "2.0 KiB"),
        ("waited seconds", 0.02, "20.0 ms"),
        ("faults", 1234, "1,234"),
        ("share", 0.256, "0.26"),
    ],
)
def test_figures_are_shown_by_what_they_are(name: str, value: int | float | str, text: str) -> None:
    assert shown(name, value) == text


def test_what_is_accounted_for_is_left_out() -> None:
    one = case(moved(0, 4, HOST, GPU), moved(2, 4, HOST, GPU), arrays=[named("a", 0, 4), named("b", 4, 2)])
    first, second = one.histories
    left = one.without(claims(first, [0]))
    assert [(history.subject.name, len(history.shares)) for history in left.histories] == [("a", 1), ("b", 1)]
    assert one.without([]) is one
    assert [history.subject.name for history in one.without(claims(second, [1])).histories] == ["a"]


def test_seconds_for_people() -> None:
    assert [format_seconds(one) for one in (0.0, 2e-6, 1.5e-3, 60.0)] == ["0 us", "2 us", "1.5 ms", "60.00 s"]
