from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from umarray.drivers import amdsmi
from umarray.errors import NotSupported


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = types.ModuleType("amdsmi")
    module.amdsmi_init = lambda: None
    module.amdsmi_get_processor_handle_from_bdf = lambda pci: pci
    module.amdsmi_get_gpu_vram_usage = lambda handle: {"vram_total": 65520, "vram_used": 6}
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    monkeypatch.setattr(amdsmi, "_amdsmi", None)
    return module


def test_a_card_in_bytes(fake: Any) -> None:
    assert amdsmi.card("0000:c1:00.0") == amdsmi.Card(used=6 << 20, total=65520 << 20)


def test_a_card_that_it_does_not_know(fake: Any) -> None:
    def refuse(pci: str) -> None:
        raise RuntimeError("invalid BDF")

    fake.amdsmi_get_processor_handle_from_bdf = refuse
    with pytest.raises(NotSupported, match="0000:c1:00.0: invalid BDF"):
        amdsmi.card("0000:c1:00.0")


def test_without_its_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "amdsmi.py").write_text('print("Unable to find libamd_smi.so")\nraise KeyError("libamd_smi.so")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    monkeypatch.setattr(amdsmi, "_amdsmi", None)
    with pytest.raises(NotSupported, match="libamd_smi.so"):
        amdsmi.card("0000:c1:00.0")
    assert capsys.readouterr().out == ""
