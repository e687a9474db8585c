"""The demo's network: two layers in NumPy's words, which CuPy understands too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from umarray.demo.data import WHITE
from umarray.drivers.base import Array

_HIDDEN = 256
_RATE = 0.1
_MOMENTUM = 0.9
_SEED = 7
_GAIN, _MEAN = np.float32(3 / WHITE), np.float32(0.96)  # the mean of three times the pixels, near enough


class Network:
    """64 bytes in, tanh, ten classes out; trained by gradient descent with momentum.

    Parameters
    ----------
    xp : module
        numpy or cupy.
    asarray : callable
        Makes the weights, from the same numbers everywhere: `numpy.asarray`, or `umarray.asarray` for a pool's memory.

    Notes
    -----
    Smooth throughout, and without a division by small running means: rounding that differs between array libraries
    stays as small as it starts.
    """

    def __init__(self, xp: Any, asarray: Callable[[Any], Array], inputs: int = 64, classes: int = 10) -> None:
        random = np.random.default_rng(_SEED)
        shapes = ((inputs, _HIDDEN), (_HIDDEN,), (_HIDDEN, classes), (classes,))
        starts = [random.normal(0, shape[0] ** -0.5, shape) if len(shape) > 1 else np.zeros(shape) for shape in shapes]
        self.xp = xp
        self.weights = [asarray(start.astype(np.float32)) for start in starts]
        self.classes = asarray(np.arange(classes, dtype=np.uint8))
        self._velocities = [asarray(np.zeros(shape, np.float32)) for shape in shapes]

    def step(self, images: Array, labels: Array) -> None:
        """Learn from one batch of bytes; the weights change in place."""
        xp, (first, first_bias, second, second_bias) = self.xp, self.weights
        pixels = self._cast(images)
        hidden = xp.tanh(pixels @ first + first_bias)
        error = self._softmax(hidden @ second + second_bias)
        error -= labels[:, None] == self.classes
        error /= len(labels)
        back = (error @ second.T) * (1 - hidden * hidden)
        gradients = (pixels.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0))
        for weight, velocity, gradient in zip(self.weights, self._velocities, gradients, strict=True):
            velocity *= _MOMENTUM
            velocity -= _RATE * gradient
            weight += velocity

    def accuracy(self, images: Array, labels: Array) -> float:
        """The share of images that are recognised."""
        first, first_bias, second, second_bias = self.weights
        scores = self.xp.tanh(self._cast(images) @ first + first_bias) @ second + second_bias
        return float((scores.argmax(axis=1) == labels).mean())

    def _cast(self, images: Array) -> Array:
        """Float pixels around 0: bytes are what travels, and the device is where they grow."""
        pixels = images.reshape(len(images), -1).astype(np.float32)
        pixels *= _GAIN
        pixels -= _MEAN
        return pixels

    def _softmax(self, scores: Array) -> Array:
        scores -= scores.max(axis=1, keepdims=True)
        self.xp.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        return scores
