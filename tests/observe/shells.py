"""A notebook's shell within the test's own process."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

import umarray as um
from umarray import drivers
from umarray.drivers.host import HostDriver

pytest.importorskip("IPython")

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LAST = ("last_exc", "last_value", "last_traceback", "last_type")


class Notebook:
    """Runs cells one after another; what each printed comes back."""

    def __init__(self, shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self.shell = shell
        self._capsys = capsys
        self.error: BaseException | None = None

    def run(self, cell: str) -> str:
        self._capsys.readouterr()
        result = self.shell.run_cell(cell, store_history=True)
        self.error = result.error_in_exec or result.error_before_exec
        del result
        printed = self._capsys.readouterr()
        return _COLOUR.sub("", printed.out + printed.err)

    def value(self, name: str) -> Any:
        return self.shell.user_ns[name]


@contextmanager
def a_notebook(capsys: pytest.CaptureFixture[str], *, on_host: bool = True) -> Iterator[Notebook]:
    """A shell with the extension loaded, on the host unless told otherwise; nothing of it is left afterwards."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    before = drivers.current_driver()
    if on_host:
        drivers.set_driver(HostDriver(("a test wants it",)))
    was = {name: getattr(sys, name) for name in _LAST if hasattr(sys, name)}
    for name in was:
        delattr(sys, name)
    vars(builtins).pop("_", None)  # a doctest leaves it, and IPython then keeps no last value
    module = ModuleType("a_notebook")
    shell = InteractiveShell.instance(config=config, user_module=module)
    try:
        notebook = Notebook(shell, capsys)
        notebook.run("%load_ext umarray")
        assert notebook.error is None
        yield notebook
    finally:
        um.uninstall()
        shell.user_ns.clear()
        InteractiveShell.clear_instance()
        sys.modules.pop("a_notebook", None)
        for name in _LAST:
            if name in was:
                setattr(sys, name, was[name])
            elif hasattr(sys, name):
                delattr(sys, name)
        if on_host:
            drivers.set_driver(before)
