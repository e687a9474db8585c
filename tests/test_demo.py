"""The demo: its data, its network, the whole, and what it refuses."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from umarray import drivers
from umarray.demo import add_arguments, data, run, timeline
from umarray.demo.network import _RATE, Network
from umarray.demo.table import broken_promises, table
from umarray.demo.training import PlainSlot, Results, reference
from umarray.drivers.host import HostDriver

KEYS = """mode driver transport samples epochs accuracy reference_accuracy max_abs_difference step_ms stage_ms
ideal_step_ms overlap_efficiency driver_allocations_after_first_epoch peak_bytes escapes""".split()


def parse(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(options)


@pytest.fixture(scope="module")
def digits() -> data.Digits:
    return data.load()


def some_results(**changes: Any) -> Results:
    good = Results("host", "host", "host", 1797, 10, 0.99, 0.99, 0.0, 2.0, {"prepare": 1.0}, 1.0, 0.5, 0, 4096, 0)
    return dataclasses.replace(good, **changes)


@pytest.fixture(scope="module", autouse=True)
def host() -> Iterator[None]:
    """What is tested here is host mode, whatever this machine could do."""
    before = drivers.set_driver(HostDriver(("a test wants it",)))
    yield
    drivers.set_driver(before)


# The data


def test_the_digits_are_split_into_a_held_out_fifth_and_the_rest(digits):
    assert digits.images.shape == (1797, 8, 8) and digits.images.dtype == np.uint8
    assert digits.images.max() == data.WHITE
    assert len(digits.held_out) == 1797 // 5
    assert sorted([*digits.held_out, *digits.training]) == list(range(1797))
    assert np.bincount(digits.test_set()[1]).min() >= 20  # every digit is tested


def test_an_epoch_shows_each_training_image_as_often_as_it_should(digits):
    batches = data.Batches(digits)
    items = list(batches)
    assert len(items) == len(batches)
    assert {len(item.rows) for item in items[:-1]} == {data.BATCH} and len(items[-1].rows) <= data.BATCH
    pairs = [pair for item in items for pair in zip(item.rows, item.copies, strict=True)]
    assert len(set(pairs)) == len(pairs) == len(digits.training) * data.COPIES
    assert {row for row, _ in pairs} == set(digits.training)


def test_an_epochs_batches_are_the_same_each_time_and_others_in_another_epoch(digits):
    batches = data.Batches(digits)
    first, again = next(iter(batches)), next(iter(batches))
    batches.epoch = 1
    other = next(iter(batches))
    assert np.array_equal(first.rows, again.rows)
    assert not np.array_equal(first.rows, other.rows)


def test_an_augmentation_depends_on_image_copy_and_epoch_alone():
    rows, copies = np.repeat(np.arange(500), 4), np.tile(np.arange(4), 500)
    shifts, scales = data.augmentation(data.Item(3, rows, copies))
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = data.augmentation(data.Item(3, rows[order], copies[order]))
    assert np.array_equal(shuffled[0], shifts[order]) and np.array_equal(shuffled[1], scales[order])
    later, _ = data.augmentation(data.Item(4, rows, copies))
    values = np.concatenate([shifts.ravel(), later.ravel()])
    assert len(np.unique(values)) > 0.99 * len(values)
    assert abs(values).max() <= data._SHIFT and abs(values.mean()) < 0.02
    assert abs(scales - 1).max() <= data._SCALE and abs(scales.mean() - 1) < 0.01
    assert abs(np.corrcoef(shifts[:, 0], shifts[:, 1])[0, 1]) < 0.05


def plain_slot() -> PlainSlot:
    return PlainSlot(images=np.full((data.BATCH, 8, 8), 255, np.uint8), labels=np.full(data.BATCH, 99, np.uint8))


def test_a_batch_without_augmentation_is_its_images(digits, monkeypatch):
    monkeypatch.setattr(data, "augmentation", lambda item: (np.zeros((3, 2), np.float32), np.ones(3, np.float32)))
    slot = plain_slot()
    rows = np.array([5, 1700, 0])
    data.preparation(digits)(data.Item(0, rows, np.zeros(3, np.int64)), slot)
    assert slot.length == 3
    assert np.array_equal(slot["images"][:3], digits.images[rows])
    assert np.array_equal(slot["labels"][:3], digits.labels[rows])
    assert (slot["images"][3:] == 255).all() and (slot["labels"][3:] == 99).all()


def test_augmented_images_are_near_their_originals_and_differ_from_them(digits):
    slot, item = plain_slot(), next(iter(data.Batches(digits)))
    data.preparation(digits)(item, slot)
    original = digits.images[item.rows].astype(float)
    likeness = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(slot["images"], original, strict=True)]
    assert np.median(likeness) > 0.8 and max(likeness) < 1


# The network


def test_a_step_goes_down_the_gradient():
    network, random = Network(np, np.asarray), np.random.default_rng(0)
    images, labels = random.integers(0, 240, (6, 8, 8), np.uint8), random.integers(0, 10, 6, np.uint8)
    network.weights = [weight.astype(float) for weight in network.weights]
    network._velocities = [np.zeros_like(weight) for weight in network.weights]
    before = [weight.copy() for weight in network.weights]

    def loss(weights):
        first, first_bias, second, second_bias = weights
        scores = np.tanh(network._cast(images) @ first + first_bias) @ second + second_bias
        return np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(6), labels])

    network.step(images, labels)
    for number, weight in enumerate(before):
        for place in [tuple(random.integers(weight.shape)) for _ in range(5)]:
            moved = [[w.copy() for w in before] for _ in range(2)]
            moved[0][number][place] += 1e-5
            moved[1][number][place] -= 1e-5
            slope = (loss(moved[0]) - loss(moved[1])) / 2e-5
            assert (network.weights[number] - weight)[place] == pytest.approx(-_RATE * slope, rel=1e-3, abs=1e-9)


def test_the_plain_loop_learns_and_is_repeatable(digits):
    one, two = reference(digits, 1), reference(digits, 1)
    assert all(np.array_equal(a, b) for a, b in zip(one.weights, two.weights, strict=True))
    assert one.accuracy(*digits.test_set()) > 0.85
    assert Network(np, np.asarray).accuracy(*digits.test_set()) < 0.3
    assert {weight.dtype for weight in one.weights} == {np.dtype(np.float32)}


# The whole


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> SimpleNamespace:
    """One full run as the command line has it, with a plot."""
    plot = tmp_path_factory.mktemp("plot") / "stages.png"
    patch = pytest.MonkeyPatch()
    printed: list[str] = []
    patch.setattr("builtins.print", lambda *text, **_: printed.append(" ".join(map(str, text))))
    try:
        code = run(parse("--json", "--plot", str(plot)))
    finally:
        patch.undo()
    return SimpleNamespace(code=code, printed=printed, plot=plot)


def test_the_demo_keeps_its_promises(whole):
    assert whole.code == 0 and len(whole.printed) == 1
    results = json.loads(whole.printed[0])
    assert list(results) == KEYS
    assert results["samples"] == 1797 and results["epochs"] == 10
    assert (results["mode"], results["driver"], results["transport"]) == ("host", "host", "host")
    assert results["accuracy"] >= 0.95 and results["reference_accuracy"] >= 0.95
    assert 0 <= results["max_abs_difference"] <= 1e-4
    assert results["driver_allocations_after_first_epoch"] == 0 and results["escapes"] == 0
    assert results["peak_bytes"] > 0
    assert (
        list(results["stage_ms"]) == ["source", "prep", "transfer", "compute"]
        and min(results["stage_ms"].values()) >= 0
    )
    assert results["ideal_step_ms"] > 0 and results["step_ms"] > 0
    assert results["overlap_efficiency"] == pytest.approx(results["ideal_step_ms"] / results["step_ms"])


def test_the_plot_is_a_picture(whole):
    assert whole.plot.read_bytes().startswith(b"\x89PNG")
    assert whole.plot.stat().st_size > 10_000


def test_one_epoch_is_enough_for_a_result_and_too_little_for_the_accuracy(capsys):
    assert run(parse("--epochs", "1")) == 0
    out = capsys.readouterr().out
    assert "1 epochs of" in out and "overlap efficiency" in out


# What it prints


def test_the_table_has_a_line_for_everything():
    text = table(some_results(stage_ms={"prepare": 1.0, "transfer": 0.5, "compute": 0.25}), 23)
    assert text.count("\n") == 15
    for told in ("0.9900", "2.000 ms", "0.250 ms", "50%", "4.0 KiB", "10 epochs of 23 steps", "1,797"):
        assert told in text


def test_the_table_warns_of_short_steps_only():
    assert "Steps this short" in table(some_results(step_ms=2.0), 23)
    assert "Steps this short" not in table(some_results(step_ms=20.0), 23)


@pytest.mark.parametrize(
    "changes, told",
    [
        ({}, []),
        ({"max_abs_difference": 2e-4}, ["the weights differ by 0.0002"]),
        ({"max_abs_difference": float("nan")}, ["the weights differ by nan"]),
        ({"accuracy": 0.9}, ["the accuracy is 0.9000"]),
        ({"accuracy": 0.9, "epochs": 9}, []),
        ({"driver_allocations_after_first_epoch": 2}, ["2 driver allocations"]),
        ({"escapes": 3}, ["3 arrays escaped"]),
    ],
)
def test_each_broken_promise_is_told(changes, told):
    broken = broken_promises(some_results(**changes))
    assert len(broken) == len(told)
    assert all(sentence.startswith(start) for sentence, start in zip(broken, told, strict=True))


def test_a_broken_promise_is_an_exit_code(monkeypatch, capsys):
    monkeypatch.setattr("umarray.demo.training.train", lambda *_: some_results(escapes=1))
    assert run(parse()) == 1
    assert "1 arrays escaped" in capsys.readouterr().err


def test_looking_whether_a_plot_can_be_written_changes_nothing(tmp_path):
    timeline.check(tmp_path / "new.png")
    assert not list(tmp_path.iterdir())
    old = tmp_path / "old.png"
    old.write_text("kept")
    timeline.check(old)
    assert old.read_text() == "kept"


# What it refuses, before any training


@pytest.fixture
def no_training(monkeypatch):
    def trained(*_: object) -> None:
        raise AssertionError("it trained")

    monkeypatch.setattr("umarray.demo.training.reference", trained)
    monkeypatch.setattr("umarray.demo.network.Network.step", trained)


@pytest.mark.parametrize(
    "options", [("--epochs", "0"), ("--epochs", "-1"), ("--epochs", "x"), ("--transport", "pigeon")]
)
def test_bad_arguments_are_refused_with_their_value(options, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(*options)
    assert caught.value.code == 2
    assert repr(options[1]) in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, told", [("nowhere/x.png", "No such file"), ("x.txt", "end in .png"), (".", "end in .png")]
)
def test_a_plot_that_cannot_be_written_is_refused(name, told, tmp_path, capsys, no_training):
    assert run(parse("--plot", str(tmp_path / name))) == 2
    error = capsys.readouterr().err
    assert error.startswith("umarray demo: error: ") and told in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "missing, options, told",
    [
        ("sklearn", (), "pip install '.[demo]'"),
        ("matplotlib", ("--plot", "x.png"), "pip install '.[plot]'"),
    ],
)
def test_a_missing_package_is_one_line(missing, options, told, monkeypatch, capsys, no_training):
    gone = {missing, "threadpoolctl"}  # which comes with scikit-learn
    for name in [name for name in sys.modules if name.partition(".")[0] in gone]:
        monkeypatch.delitem(sys.modules, name)
    for name in gone:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "umarray.demo.training")
    assert run(parse(*options)) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1


def test_a_transport_that_this_process_cannot_run_is_refused(capsys, no_training):
    assert run(parse("--transport", "managed")) == 2
    error = capsys.readouterr().err
    assert error.startswith("umarray demo: error: ") and "managed" in error
