"""explain: what it takes, what it gives, and how that is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import umarray as um
from tests.observe.findings.made_up import GPU, case, moved, named
from umarray import cli
from umarray.observe import watch as watches
from umarray.observe.explain import Explanation, explain
from umarray.observe.trace import read_trace
from umarray.places import HOST

FACTS = case(moved(0, 100, HOST, GPU), arrays=[named("<table>", 0, 100)], source="somebody (exact)").facts


def test_the_last_watch_if_none_is_named(monkeypatch: Any) -> None:
    monkeypatch.setattr(watches, "_last", None)
    with pytest.raises(ValueError, match="nothing was watched yet"):
        explain()
    with um.watch() as first:
        pass
    with um.watch():
        pass
    assert explain().seconds != explain(first).seconds
    monkeypatch.setattr(watches, "_last", first)
    assert explain() == explain(first)


@pytest.mark.parametrize("wrong", ["trace.jsonl", 3, [1]])
def test_what_cannot_be_explained_is_quoted(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"explain takes a watch, or the recording of a trace, not"):
        explain(wrong)


def test_it_prints_iterates_and_goes_into_json() -> None:
    found = explain(FACTS)
    assert len(found) == 1 and bool(found) and [one.title for one in found] == ["on-demand faults"]
    lines = str(found).splitlines()
    assert lines[0] == "1 finding in 1.00 s" and lines[1].startswith("1. on-demand faults: <table> (uint8[100, 4096])")
    assert lines[-2:] == [
        "Told by somebody (exact).",
        "Savings are modelled, from the emulator's figures for an MI210.",
    ]
    values = json.loads(json.dumps(found.as_dict()))
    assert values["findings"][0]["array"]["name"] == "<table>" and values["source"] == "somebody (exact)"


def test_as_html_it_is_escaped() -> None:
    text = explain(FACTS)._repr_html_()
    assert "&lt;table&gt;" in text and "<table>" not in text.replace("<table style", "")
    assert "with um.prefetch(" in text


def test_nothing_found_is_said_and_so_is_what_is_not_known() -> None:
    empty = Explanation((), 0.5, "", "", 12)
    assert str(empty).splitlines() == [
        "nothing found in 500.0 ms",
        "Nothing here can tell what moved: only requests are known.",
        "12 records were lost, so there may be more.",
    ]
    assert not empty and "nothing found" in empty._repr_html_()


def test_escapes_are_found_without_any_device(tmp_path: Path) -> None:
    """And a trace file tells the same as the watch."""
    kept, path = [], tmp_path / "run.jsonl"
    with um.pool("1MiB") as pool, um.trace(path), um.watch() as w:
        for _ in range(2):
            with pool.epoch("step", on_escape="retain"):
                activation = um.zeros(1000, "u1")
                kept.append(activation)
                del activation
    (live,), (traced,) = explain(w), explain(read_trace(path))
    assert live.title == traced.title == "escapes"
    assert live.evidence == traced.evidence and live.remedy == traced.remedy
    assert live.subject is not None and live.subject.name == "activation"
    assert live.subject.line.startswith(f"{__file__}:")
    kept.clear()


def test_the_command_prints_it_and_needs_no_device(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    path = tmp_path / "run.jsonl"
    with um.trace(path):
        pass
    monkeypatch.setattr(cli, "get_driver", lambda: pytest.fail("a driver was chosen"))
    assert cli.main(["explain", str(path)]) == 0
    assert capsys.readouterr().out.startswith("nothing found in ")
    assert cli.main(["explain", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []


@pytest.mark.parametrize(
    ("text", "code"), [(None, 1), ("not a trace\n", 2), ('{"umarray": "trace", "version": 9}\n', 2)]
)
def test_the_command_names_a_file_that_is_none(text: str | None, code: int, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "run.jsonl"
    if text is not None:
        path.write_text(text)
    assert cli.main(["explain", str(path)]) == code
    out = capsys.readouterr()
    assert out.out == "" and out.err.startswith("umarray: ") and str(path) in out.err and out.err.count("\n") == 1
