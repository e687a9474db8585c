"""How a line of a program is called: a cell of a notebook by its number, anything else by its file."""

from __future__ import annotations

import sys


def called(line: str) -> str:
    """`file:number` as people know it: "In[3], line 2" where the file is a cell of this notebook, else as it is.

    Notes
    -----
    Never imports IPython: where nobody else has, there is no cell.

    Examples
    --------
    >>> from umarray.lines import called
    >>> called("train.py:12")
    'train.py:12'
    """
    filename, _, number = line.rpartition(":")
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = name_of(filename) if name_of is not None else None
    return f"{found[1]}, line {number}" if found else line
