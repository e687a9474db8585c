from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from umarray.drivers import ranges
from umarray.errors import NotSupported

SOURCE = """
static char last[64];
static unsigned long long number, stopped;
unsigned long long roctxRangeStartA(const char* text) {
  int i = 0;
  for (; text[i] && i < 63; ++i) last[i] = text[i];
  last[i] = 0;
  return ++number << 40;
}
void roctxRangeStop(unsigned long long id) { stopped = id; }
const char* heard(void) { return last; }
unsigned long long ended(void) { return stopped; }
"""


def test_roctx(tmp_path: Path) -> None:
    import ctypes

    source, built = tmp_path / "roctx.c", tmp_path / "libroctx64.so"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", built, source], check=True)
    library = ranges.roctx(["libnot_there.so", str(built)])
    one = library.start("umarray: prefetch")
    library.stop(one)
    spy = ctypes.CDLL(str(built))
    spy.heard.restype, spy.ended.restype = ctypes.c_char_p, ctypes.c_uint64
    assert spy.heard() == b"umarray: prefetch" and spy.ended() == one == 1 << 40  # more than an int holds


def test_without_roctx() -> None:
    with pytest.raises(NotSupported, match="libnot_there.so"):
        ranges.roctx(["libnot_there.so"])


def test_nvtx(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    module: Any = types.ModuleType("nvtx")
    module.start_range = lambda name, domain: heard.append((name, domain)) or 7
    module.end_range = heard.append
    monkeypatch.setitem(sys.modules, "nvtx", module)
    library = ranges.nvtx()
    library.stop(library.start("umarray: epoch"))
    assert heard == [("umarray: epoch", "umarray"), 7]


def test_without_nvtx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(NotSupported, match="the package nvtx"):
        ranges.nvtx()
