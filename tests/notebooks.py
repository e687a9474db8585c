"""Running the example notebooks, each from a clean kernel."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
RAW = re.compile(r"object at 0x|<Figure size|^\w+\(\w+=", re.MULTILINE)


def read(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", 4)


def run(name: str, folder: Path, environment: dict[str, str]) -> Any:
    """Run a notebook in `folder`; gives it back with its outputs. An error in a cell is an error here.

    A program started by the tests must show nothing of its user: settings of Jupyter's are read from `folder` only.
    """
    notebook = read(name)
    own = {"IPYTHONDIR": str(folder / "ipython"), "JUPYTER_CONFIG_DIR": str(folder / "jupyter")}
    place = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(notebook, timeout=60, startup_timeout=30, kernel_name="python3", resources=place)
    (folder / "ipython").mkdir()
    client.execute(env={**environment, **own})
    return notebook


def check_outputs(notebook: Any) -> None:
    """Nothing on standard error, no raw repr; what is wider than a line is a table or a picture."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                assert output.name == "stdout", output.text
                assert not RAW.search(output.text), output.text
                continue
            plain = output.data["text/plain"]
            assert not RAW.search(plain), plain
            if not {"text/html", "image/png"} & set(output.data):
                assert len(plain) < 100, plain


def plain_texts(notebook: Any) -> list[str]:
    return [out.data["text/plain"] for cell in notebook.cells for out in cell.get("outputs", ()) if "data" in out]


def pictures_in(notebook: Any) -> int:
    return sum("image/png" in out.get("data", ()) for cell in notebook.cells for out in cell.get("outputs", ()))


def on_the_host() -> dict[str, str]:
    return {**os.environ, "UMARRAY_MODE": "host"}
