"""A progress bar, where tqdm is installed and someone watches."""

from __future__ import annotations

import os
from typing import Any

from umarray import settings

VARIABLE = "UMARRAY_PROGRESS"


def progress_bar(wanted: bool, source: Any) -> Any:
    """A tqdm bar over the source's length, or None: not wanted, switched off by UMARRAY_PROGRESS=0, or no tqdm.

    Where standard error is no terminal the bar stays silent.
    """
    if not wanted or (VARIABLE in os.environ and settings.text(VARIABLE) is None):
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    try:
        total = len(source)
    except TypeError:
        total = None
    return tqdm(total=total, unit="batch", disable=None)
