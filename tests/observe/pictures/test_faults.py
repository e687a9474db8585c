from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from umarray.events import Began, Ended, Faulted
from umarray.observe.counters import Counts
from umarray.observe.pictures.faults import faults
from umarray.observe.recording import Header, Recording, Stamped
from umarray.places import HOST, Device

pytest.importorskip("matplotlib")


def heights(axes: Any) -> list[float]:
    return [bar.get_height() for bar in axes.patches]


def test_two_bars_a_step_of_pairs_reports_and_watches() -> None:
    report = SimpleNamespace(counts=Counts(device_faults=5, host_faults=6))
    watch = SimpleNamespace(report=SimpleNamespace(counts=Counts(device_faults=7)))
    (axes,) = faults([(1, 2), report, watch]).figure.axes
    assert heights(axes) == [1, 5, 7, 2, 6, 0]
    assert len({bar.get_hatch() for bar in axes.patches}) == 2
    assert axes.get_ylabel() == "faults (count)"


def test_the_epochs_of_a_recording_are_its_steps() -> None:
    told = [
        (0.5, Faulted(0, 4096, Device(0), 9, None, 0.5)),  # before the first epoch
        (1.0, Began(1, "epoch", "a", "")),
        (1.5, Faulted(0, 4096, Device(0), 2, None, 1.5)),
        (1.6, Faulted(0, 4096, HOST, 3, None, 1.6)),
        (1.7, Ended(1, "epoch")),
        (1.8, Faulted(0, 4096, Device(1), 4, None, 1.8)),  # queued in the epoch
        (1.9, Began(2, "prefetch", "", "")),
        (2.0, Began(3, "epoch", "b", "")),
        (2.1, Faulted(0, 4096, Device(0), 5, None, 2.1)),
    ]
    recording = Recording(Header(0.0), tuple(Stamped(at, 0, record) for at, record in told))
    for what in (recording, SimpleNamespace(recording=recording)):
        (axes,) = faults(what).figure.axes
        assert heights(axes) == [6, 5, 3, 0]
    with pytest.raises(ValueError, match="no epoch"):
        faults(Recording(Header(0.0), ()))


def test_steps_have_names_or_numbers() -> None:
    (axes,) = faults([(1, 2), (3, 4)], labels=["before", "after"]).figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["before", "after"]
    with pytest.raises(ValueError, match="1 labels for 2 steps"):
        faults([(1, 2), (3, 4)], labels=["before"])


def test_many_steps_stay_readable() -> None:
    (axes,) = faults([(number, 0) for number in range(500)]).figure.axes
    assert len(axes.get_xticks()) <= 25 and not axes.texts


def test_no_faults_at_all_is_a_picture_too() -> None:
    (axes,) = faults([(0, 0)]).figure.axes
    assert axes.get_ylim()[1] >= 1


def test_what_nobody_saw_is_not_drawn_as_none() -> None:
    with pytest.raises(ValueError, match="nobody saw"):
        faults([SimpleNamespace(counts=Counts(bytes_to_host=3))])
    with pytest.raises(ValueError, match="no step"):
        faults([])
