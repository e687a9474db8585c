from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import umarray as um
from tests.observe.test_recording import SAMPLES
from umarray import cli, events
from umarray.observe.chrome import to_chrome
from umarray.observe.recording import Header, Recording, Stamped
from umarray.places import HOST, Device


def converted(path: Path, *records: Stamped, **header: Any) -> list[dict[str, Any]]:
    to_chrome(Recording(Header(**{"began": 10.0, "ended": 20.0, **header}), records), path)
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


def spans(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in found if event["ph"] == "X"]


def test_a_scope_lasts_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    began = events.Began(1, "prefetch", "", "a.py:1", Device(0))
    inside = events.Began(2, "host_view", "r", "a.py:2", HOST)
    found = converted(
        tmp_path / "t.json",
        Stamped(11.0, 7, began),
        Stamped(12.0, 7, inside),
        Stamped(12.5, 7, events.Ended(2, "host_view")),
        Stamped(13.0, 7, events.Ended(1, "prefetch")),
    )
    first, second = spans(found)
    assert (first["name"], first["ts"], first["dur"]) == ("prefetch", 1e6, 2e6)
    assert (second["name"], second["ts"], second["dur"]) == ("host_view r", 2e6, 5e5)
    assert first["tid"] == second["tid"] and first["args"]["line"] == "a.py:1" and first["args"]["place"] == 0


def test_what_was_never_ended_lasts_to_the_end(tmp_path: Path) -> None:
    (span,) = spans(converted(tmp_path / "t.json", Stamped(11.0, 7, events.Began(1, "epoch", "train", ""))))
    assert (span["name"], span["dur"]) == ("epoch train", 9e6)


def test_a_wait_ends_when_it_is_told(tmp_path: Path) -> None:
    (span,) = spans(converted(tmp_path / "t.json", Stamped(12.0, 7, events.Waited(1.5, "a host view waits"))))
    assert (span["name"], span["ts"], span["dur"]) == ("a host view waits", 5e5, 1.5e6)


def test_stages_and_places_have_rows_of_their_own(tmp_path: Path) -> None:
    found = converted(
        tmp_path / "t.json",
        Stamped(11.0, 0, events.Migrated(0, 4096, HOST, Device(0), "fault", 11.0, 11.5)),
        Stamped(12.0, 0, events.Faulted(0, 4096, Device(0), 3, None, 12.0)),
        Stamped(14.0, 7, events.StageRan("prep", 3, 13.0, 14.0)),
        Stamped(15.0, 0, events.Migrated(0, 4096, Device(0), HOST, "eviction", 15.0, 15.0)),
    )
    rows = {(event["pid"], event["tid"]): event["args"]["name"] for event in found if event["name"] == "thread_name"}
    named = {rows[event["pid"], event["tid"]]: event for event in spans(found)}
    assert set(named) == {"to device 0", "faults of device 0", "prep", "to the host"}
    assert (named["prep"]["name"], named["prep"]["ts"], named["prep"]["dur"]) == ("prep 3", 3e6, 1e6)
    assert named["to device 0"]["name"] == "moved: fault" and named["to the host"]["dur"] > 0
    assert named["faults of device 0"]["name"] == "3 faults"


def test_nothing_lies_before_the_beginning(tmp_path: Path) -> None:
    found = converted(tmp_path / "t.json", Stamped(10.0, 0, events.Used(0, 1, Device(0), None, 9.0)))
    assert all(event["ts"] >= 0 for event in spans(found))
    found = converted(tmp_path / "t.json", Stamped(10.5, 7, events.Waited(3.0, "began before")))
    assert [event["ts"] for event in spans(found)] == [0]


def test_every_record_can_be_shown(tmp_path: Path) -> None:
    found = converted(tmp_path / "t.json", *(Stamped(11.0, 7, record) for record in SAMPLES))
    assert len(spans(found)) == len(SAMPLES) - 2  # an end ends what began, a name is nothing that happens
    for event in spans(found):
        assert set(event) >= {"name", "ph", "ts", "dur", "pid", "tid", "args"} and event["dur"] > 0


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    with um.trace(tmp_path / "t.jsonl"), um.pool("1MiB"):
        x = um.zeros(10)
        del x
    assert cli.main(["trace", "convert", str(tmp_path / "t.jsonl"), str(tmp_path / "t.json")]) == 0
    before = (tmp_path / "t.jsonl").read_bytes()
    assert cli.main(["trace", "convert", str(tmp_path / "t.jsonl"), str(tmp_path / "t.jsonl")]) == cli.MISUSED
    assert (tmp_path / "t.jsonl").read_bytes() == before
    assert spans(json.loads((tmp_path / "t.json").read_text())["traceEvents"])
    (tmp_path / "no").write_text("hello")
    assert cli.main(["trace", "convert", str(tmp_path / "no"), str(tmp_path / "t.json")]) == cli.MISUSED
    assert cli.main(["trace", "convert", str(tmp_path / "missing"), str(tmp_path / "t.json")]) == cli.FAILED
    assert len(capsys.readouterr().err.splitlines()) == 3
