"""The demo's images, cut into batches, and the preparation of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from umarray.drivers.base import Array
from umarray.pipeline import prep

BATCH = 512
COPIES = 8  # times that each image is shown in an epoch, shifted and scaled anew
WHITE = 240  # of the stored images; the data set counts from 0 to 16
_SEED = 20_260_101
_SHIFT = 0.7  # pixels, at most, either way
_SCALE = 0.15  # at most this much smaller or larger


class Refused(Exception):
    """The demo cannot run as it was asked to; the text says why, and what to do."""


@dataclass(frozen=True)
class Digits:
    """Handwritten digits: images of 8x8 bytes, their labels, and which of them are held out for the test."""

    images: Array
    labels: Array
    training: Array
    held_out: Array

    def test_set(self) -> tuple[Array, Array]:
        """The held-out fifth: images and labels, as they are."""
        return self.images[self.held_out], self.labels[self.held_out]


def load() -> Digits:
    """Scikit-learn's bundled digits, 1,797 real images; nothing is downloaded.

    Raises
    ------
    Refused
        Scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise Refused("the demo needs scikit-learn: pip install '.[demo]' from the clone") from None
    found = load_digits()
    images = (found.images * (WHITE // 16)).astype(np.uint8)
    order = np.random.default_rng(_SEED).permutation(len(images))
    fifth = len(images) // 5
    return Digits(images, found.target.astype(np.uint8), np.sort(order[fifth:]), np.sort(order[:fifth]))


@dataclass(frozen=True)
class Item:
    """What is known of a batch before it is prepared: which images, in which copy of which epoch."""

    epoch: int
    rows: Array
    copies: Array


class Batches:
    """The batches of one epoch after another; `epoch` says which one the next iteration gives."""

    def __init__(self, digits: Digits) -> None:
        self._rows = digits.training
        self.epoch = 0

    def __len__(self) -> int:
        return -(-len(self._rows) * COPIES // BATCH)

    def __iter__(self) -> Iterator[Item]:
        order = np.random.default_rng((_SEED, self.epoch)).permutation(len(self._rows) * COPIES)
        for start in range(0, len(order), BATCH):
            copies, places = np.divmod(order[start : start + BATCH], len(self._rows))
            yield Item(self.epoch, self._rows[places], copies)


def preparation(digits: Digits) -> Callable[[Item, Any], None]:
    """The function that prepares a batch: its images shifted and scaled, written straight into a slot as bytes."""

    def prepare(item: Item, slot: Any) -> None:
        count = slot.length = len(item.rows)
        shifts, scales = augmentation(item)
        with _a_core_left_over():
            prep.shift_scale(digits.images, item.rows, shifts, scales, slot["images"][:count])
        np.take(digits.labels, item.rows, out=slot["labels"][:count])

    return prepare


@contextmanager
def _a_core_left_over() -> Iterator[None]:
    """Fewer numba threads than cores, in this thread: the thread that computes, or launches, wants one too."""
    before = numba.get_num_threads()
    numba.set_num_threads(max(1, before - 1))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def augmentation(item: Item) -> tuple[Array, Array]:
    """Shifts (n, 2) and scales (n) of a batch's images, drawn from image, copy and epoch alone.

    So they depend on no order and no thread. The draw is splitmix64's finaliser over a counter (Steele, Lea and
    Flood, 2014).
    """
    image = (np.uint64(item.epoch) << np.uint64(40)) + item.copies.astype(np.uint64) * np.uint64(1 << 20)
    image += item.rows.astype(np.uint64)
    bits = (image[:, None] * np.uint64(3) + np.arange(1, 4, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    uniform = ((bits >> np.uint64(40)) * 2.0**-23 - 1).astype(np.float32)  # in [-1, 1)
    return uniform[:, :2] * np.float32(_SHIFT), 1 + uniform[:, 2] * np.float32(_SCALE)
