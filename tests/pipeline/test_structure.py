"""Nests: taken apart, put together, compared; specs."""

from __future__ import annotations

import pickle
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import umarray as um
from umarray.pipeline.structure import Spec, Structure, is_array

Pair = namedtuple("Pair", "first second")

leaves = st.one_of(
    st.builds(lambda n: np.zeros(n), st.integers(0, 3)),
    st.builds(Spec, st.lists(st.integers(0, 4), max_size=3).map(tuple), st.sampled_from(["u1", "f4", "i8"])),
    st.none(),
    st.integers(),
    st.text(max_size=3),
)
nests = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=2), st.integers()), inner, max_size=3),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a is b


@given(nests)
def test_a_nest_is_what_is_rebuilt_from_its_leaves(nest: Any) -> None:
    form = Structure(nest)
    assert same(form.rebuild(form.arrays, form.others), nest)
    assert all(is_array(leaf) for leaf in form.arrays) and not any(is_array(leaf) for leaf in form.others)
    arrays, others = form.take(nest)
    assert all(map(same, arrays, form.arrays)) and all(map(same, others, form.others))
    assert len(form.names()) == len(form.arrays)


def test_keys_may_come_in_another_order() -> None:
    a, b = np.zeros(1), np.zeros(2)
    assert Structure({"a": a, "b": b}).take({"b": b, "a": a})[0] == [a, b]


@pytest.mark.parametrize(
    ("nest", "words"),
    [
        ({"x": np.zeros(2)}, r"item must be a dict with the keys \['x', 'y'\].*keys \['x'\]"),
        ([1], "item must be a dict .* not \\[1\\]"),
        ({"x": 3, "y": [0, np.zeros(1)]}, r"item\['x'\] must be an array.* not 3"),
        ({"x": np.zeros(2), "y": [0]}, r"item\['y'\] must be a list of 2, .* list of 1"),
        ({"x": np.zeros(2), "y": [np.zeros(3), np.zeros(1)]}, r"item\['y'\]\[0\] must be .* an array of shape \(3,\)"),
    ],
)
def test_another_form_is_refused_and_its_place_named(nest: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Structure({"x": np.zeros(2), "y": [0, np.zeros(1)]}).take(nest)


def test_a_spec_is_a_value() -> None:
    spec = um.Spec([2, 3], "f4")
    assert spec == um.Spec((2, 3), np.float32) and hash(spec) == hash(um.Spec((2, 3), "f4"))
    assert spec.nbytes == 24 and um.Spec(5).shape == (5,) and um.Spec((), "u1").nbytes == 1
    assert pickle.loads(pickle.dumps(spec)) == spec
    with pytest.raises(AttributeError):
        spec.shape = (1,)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1,), ValueError),
        (((2, -1),), ValueError),
        ((2.0,), TypeError),
        ((True,), TypeError),
        (("ab",), TypeError),
        ((2, object), TypeError),
        ((2, "S"), TypeError),
        ((2, "nonsense"), TypeError),
        (((2**62, 4), "u1"), ValueError),
    ],
)
def test_a_spec_that_no_slot_can_hold(arguments: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        um.Spec(*arguments)


def test_a_slot_holds_the_native_byte_order() -> None:
    """CuPy's kernels read the device's order, whatever the dtype says."""
    pair = np.dtype([("a", ">i4"), ("b", "<f8", (2,))])
    for kind in (">f8", "<i4", pair):
        assert Spec(3, kind).dtype == np.dtype(kind).newbyteorder("=") and Spec(3, kind).dtype.isnative


@pytest.mark.parametrize("mode", ["explicit", "managed"])
def test_an_item_of_another_byte_order_is_copied_in_by_value(make_fake: Any, mode: str) -> None:
    make_fake(mode)
    item = np.arange(6, dtype=">i4").reshape(3, 2)
    with um.Pipeline([item], out=um.HOST, compute=lambda batch: batch.data) as p:
        (result,) = list(p)
    assert result.dtype.isnative and (result == item).all()
