from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from umarray.lines import called


def test_a_file_keeps_its_name() -> None:
    assert called("train.py:12") == "train.py:12"
    assert called("<stdin>:1") == "<stdin>:1" and called("") == ""


def test_a_cell_is_called_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"/tmp/ipykernel_1/99.py": ("Cell", "In[3]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert called("/tmp/ipykernel_1/99.py:2") == "In[3], line 2"
    assert called("train.py:12") == "train.py:12"


def test_an_ipython_without_a_shell_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert called("train.py:12") == "train.py:12"
