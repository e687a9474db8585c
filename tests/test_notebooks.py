"""The example notebooks as files, and what of them runs without a device. The rest: emulated/test_notebooks.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.notebooks import NOTEBOOKS, check_outputs, on_the_host, read, run


def name_of(path: Path) -> str:
    return path.stem


def sources(notebook: Any, kind: str) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


def test_the_notebooks_are_there() -> None:
    assert {path.stem for path in NOTEBOOKS} == {"first_steps", "embedding_loop", "beyond_memory"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_is_kept_without_outputs_and_fits_a_page(path: Path) -> None:
    notebook = read(path.stem)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None
            assert all(len(line) <= 88 for line in cell.source.splitlines())
    assert notebook.metadata.keys() == {"kernelspec", "language_info"}
    assert sources(notebook, "markdown")[0].startswith("# ")
    assert any("assert " in source for source in sources(notebook, "code")[-2:])


def test_the_first_steps_are_ten_cells() -> None:
    assert len(read("first_steps").cells) == 10


def test_the_first_steps_run_on_the_host(tmp_path: Path) -> None:
    check_outputs(run("first_steps", tmp_path, on_the_host()))
