from __future__ import annotations

import json
from dataclasses import fields

import pytest

from umarray import events
from umarray.observe.recording import TYPES, Header, as_plain, from_plain
from umarray.places import HOST, Device

SAMPLES = [
    events.Began(3, "prefetch", "", "a.py:1", Device(1), 7, (events.Operand(4096, 80, (2, 5), "float64"),)),
    events.Ended(3, "prefetch"),
    events.Allocated(4096, 1, "managed", Device(0)),
    events.Freed(4096, 1, "managed", Device(0)),
    events.Prefetched(4096, 8192, HOST, True, 5, 3),
    events.Advised(4096, 8192, "read_mostly", Device(0), True, False),
    events.Copied(80, HOST, Device(0), 4096, 3),
    events.Waited(0.5, "why", 0, 3),
    events.StageRan("prep", 3, 1.0, 2.0),
    events.EpochEnded("train", 1, 80, (("a.py:1", 1, 80),)),
    events.Made(4096, 512, "a.py:2"),
    events.Gone(4096, 512),
    events.Migrated(4096, 8192, HOST, Device(0), "fault", 1.0, 2.0, "copied", False),
    events.Faulted(4096, 4096, HOST, 2, None, 1.0),
    events.Used(4096, 4096, Device(0), True, 1.0),
    events.Named("x", 4096, 80, (2, 5), "float64"),
]


def test_there_is_a_sample_of_every_record() -> None:
    assert {type(one) for one in SAMPLES} == set(TYPES.values())


@pytest.mark.parametrize("record", SAMPLES, ids=lambda one: type(one).__name__)
def test_a_record_survives_json(record: events.Record) -> None:
    assert from_plain(json.loads(json.dumps(as_plain(record)))) == record


@pytest.mark.parametrize("record", SAMPLES, ids=lambda one: type(one).__name__)
def test_fields_that_a_newer_version_adds_are_left_out(record: events.Record) -> None:
    assert from_plain({**as_plain(record), "colour": "red"}) == record


def test_fields_with_defaults_may_be_missing() -> None:
    plain = as_plain(events.Prefetched(4096, 8192, HOST, True))
    del plain["scope"], plain["stream"]
    assert from_plain(plain) == events.Prefetched(4096, 8192, HOST, True)


@pytest.mark.parametrize("plain", [{}, {"type": "Nonsense"}, {"type": "Record"}, {"type": "Gone", "address": 1}])
def test_what_is_no_record_is_refused(plain: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"no record|is no Gone"):
        from_plain(plain)


def test_a_header_knows_what_can_be_seen() -> None:
    assert Header(0.0, sources=({"sees": ["a", "b"]}, {"sees": ["b", "c"]})).sees == {"a", "b", "c"}
    assert Header(0.0).sees == frozenset() and len(fields(Header)) >= 10
