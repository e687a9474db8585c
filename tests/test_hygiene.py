"""What holds for the whole package: short modules, documented names, nothing of one machine."""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path

import pytest

import umarray

ROOT = Path(__file__).parents[1]


def project_files() -> list[Path]:
    """What git tracks or would track; without git all but hidden folders' contents and caches."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        found = [ROOT / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        found = [path for path in ROOT.rglob("*") if not _left_out(path.relative_to(ROOT).parts[:-1])]
    return sorted({path for path in found if path.is_file()})


def _left_out(folders: tuple[str, ...]) -> bool:
    return any((f.startswith(".") and f != ".ci") or f in ("__pycache__", "build", "dist") for f in folders)


FILES = project_files()
MODULES = [path for path in FILES if path.suffix == ".py" and path.is_relative_to(ROOT / "umarray")]
TEXTS = [
    path
    for path in FILES
    if path.suffix in (".py", ".cpp", ".h", ".md", ".json", ".cfg", ".ipynb", "") or path.name == "run"
]
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
    if isinstance(value, str) or name == "xp":  # a version; NumPy or CuPy, whose module says nothing of itself
        return
    documented = value if inspect.isclass(value) or callable(value) or inspect.ismodule(value) else type(value)
    assert (documented.__doc__ or "").strip()
