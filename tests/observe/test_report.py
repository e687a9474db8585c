from __future__ import annotations

import json
from typing import Any

from tests.observe.fake_source import ABOUT
from umarray.memory import Escape
from umarray.observe.charge import Charged
from umarray.observe.counters import Counts
from umarray.observe.report import Requests, WatchReport

COUNTS = Counts(
    device_faults=12345,
    host_faults=2,
    bytes_to_device=1 << 20,
    bytes_to_host=0,
    bytes_between_devices=4096,
    prefetched_bytes=8192,
    used_bytes=4096,
    unused_bytes=4096,
    evicted_bytes=0,
    modelled_seconds=0.5,
)
ARRAYS = tuple(Charged(index * 4096, 4096, (2, 512), "f4", f"a.py:{index}", device_faults=index) for index in range(9))


def report(**changes: Any) -> WatchReport:
    values: dict[str, Any] = {
        "seconds": 0.25,
        "counts": COUNTS,
        "requests": Requests(prefetches=3, prefetch_bytes=12288, unsupported=2),
        "stalls": 1,
        "stall_seconds": 0.125,
        "allocations": 5,
        "allocated_bytes": 5120,
        "peak_bytes": 2048,
        "alive_bytes": 1024,
        "escapes": (Escape("a.py:1", 2, 1024, "train"),),
        "arrays": ARRAYS,
        "sources": (ABOUT,),
        "reasons": (),
        "lost": 0,
        "synchronized": True,
    }
    return WatchReport(**{**values, **changes})


def test_sums() -> None:
    assert report().faults == 12347 and report().moved_bytes == (1 << 20) + 4096
    assert report(counts=Counts()).faults is None and report(counts=Counts()).moved_bytes is None
    assert report(counts=Counts(host_faults=0)).faults == 0


def test_the_table() -> None:
    text = str(report())
    for words in (
        "faults",
        "devices 12,345, host 2",
        "to devices 1.0 MiB, to the host 0 B",
        "8.0 KiB (used 4.0 KiB, never used 4.0 KiB)",
        "3 prefetches of 12.0 KiB, 0 hints, 2 unsupported",
        "1, 0.125000 s",
        "5 blocks, 5.0 KiB, peak 2.0 KiB",
        "2, 1.0 KiB",
        "modelled cost",
        "a fake (exact)",
        "f4[2, 512] made at a.py:0",
    ):
        assert words in text, words
    assert "a.py:5" not in text and "records lost" not in text and "evicted" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_what_is_not_seen_is_said_not_to_be() -> None:
    some = report(counts=Counts(host_faults=2, prefetched_bytes=8192))
    assert "devices not seen, host 2" in str(some) and "to devices not seen" in str(some)
    assert dict(some.rows())["prefetched"] == "8.0 KiB"
    nobody = report(counts=Counts(), sources=(), reasons=("CUPTI cannot be used: none",))
    assert "nobody here can see what moves; CUPTI cannot be used: none" in str(nobody)
    assert "umarray's own record (requests)" in str(nobody) and "faults" not in dict(nobody.rows())


def test_work_that_may_go_on_and_lost_records_are_said() -> None:
    text = str(report(synchronized=False, lost=7))
    assert "(queued work may go on)" in text and "records lost" in text


def test_as_dict_is_json_and_has_everything() -> None:
    plain = json.loads(json.dumps(report().as_dict()))
    assert set(plain) == set(WatchReport.__dataclass_fields__)
    assert plain["counts"]["device_faults"] == 12345 and plain["counts"]["mapped_bytes"] is None
    assert plain["arrays"][1] == {
        **{"address": 4096, "nbytes": 4096, "shape": [2, 512], "dtype": "f4", "line": "a.py:1", "device_faults": 1},
        **dict.fromkeys(("host_faults", "bytes_to_device", "bytes_to_host", "bytes_between_devices"), 0),
        "prefetched_bytes": 0,
    }
    assert plain["escapes"][0]["line"] == "a.py:1" and plain["sources"][0]["name"] == "a fake"


def test_html_holds_the_same() -> None:
    html = report()._repr_html_()
    assert "12,345" in html and "a.py:4" in html and "a.py:5" not in html and "made at" in html
    assert "<script" not in report(reasons=("<script>",), sources=())._repr_html_()
