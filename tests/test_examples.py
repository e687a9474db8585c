from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def test_the_examples_are_there():
    names = {path.stem for path in SCRIPTS}
    assert names >= {
        "data_loader_before",
        "data_loader_after",
        "training_scopes",
        "embedding",
        "out_of_core",
        "stencil",
    }


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_says_what_it_shows_and_ends_in_an_assertion(script):
    tree = ast.parse(script.read_text())
    assert ast.get_docstring(tree)
    last = tree.body[-1]
    assert isinstance(last, ast.If) and ast.unparse(last.test) == "__name__ == '__main__'"
    assert isinstance(last.body[-1], ast.Assert)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs(script, tmp_path):
    ran = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=tmp_path,
        env={**os.environ, "UMARRAY_MODE": "host"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert not list(tmp_path.iterdir())
