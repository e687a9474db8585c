"""The example notebooks, each from a clean kernel on an emulated device of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks import check_outputs, pictures_in, plain_texts, run
from umarray import hipemu


@pytest.mark.watchdog(240)
@pytest.mark.parametrize(
    ("name", "memory", "page", "pictures"),
    [
        ("first_steps", "256MiB", "4KiB", 0),
        ("embedding_loop", "256MiB", "4KiB", 2),
        ("beyond_memory", "32MiB", "64KiB", 3),
    ],
)
def test_a_notebook_runs(name: str, memory: str, page: str, pictures: int, tmp_path: Path) -> None:
    notebook = run(name, tmp_path, hipemu.environment(memory=memory, page=page))
    check_outputs(notebook)
    assert pictures_in(notebook) == pictures
    if name == "embedding_loop":
        found = [text for text in plain_texts(notebook) if "a table read at random" in text]
        assert len(found) == 1 and "um.prefetch(table)" in found[0]
