"""What holds for the whole package: short modules, documented names, nothing of one machine."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import umarray

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "umarray").rglob("*.py"))
TEXTS = sorted(
    path
    for folder in ("umarray", "tests", "examples", "benchmarks", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts and path.suffix in (".py", ".cpp", ".h", ".md", ".json", "")
)
LONGEST = 300
# Written so that the pattern does not find itself.
LOCAL = re.compile(r"(?<![\w.])/(?:wor[k]|roo[t]|hom[e]/\w|op[t]/um)/|pyp[i]\.org|pythonhoste[d]|deb\.debia[n]\.org")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_short_and_says_what_it_is_for(path):
    text = path.read_text()
    assert text.count("\n") <= LONGEST
    assert not text.strip() or re.match(r'r?"""\S', text)


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_a_file_names_no_machine_and_no_registry(path):
    assert LOCAL.findall(path.read_text()) == []


def test_public_names_are_listed_once():
    assert len(umarray.__all__) == len(set(umarray.__all__))


@pytest.mark.parametrize("name", umarray.__all__)
def test_a_public_name_is_there_and_documented(name):
    value = getattr(umarray, name)
    if isinstance(value, str):  # a version
        return
    documented = value if inspect.isclass(value) or callable(value) or inspect.ismodule(value) else type(value)
    assert (documented.__doc__ or "").strip()
