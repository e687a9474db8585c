"""What ROCm's own library, `amdsmi`, says of a card, where it is installed. No root is needed."""

from __future__ import annotations

import importlib
import threading
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

from umarray.errors import NotSupported

_lock = threading.Lock()
_amdsmi: Any = None


@dataclass(frozen=True, slots=True)
class Card:
    """A card at one moment, all processes together."""

    used: int
    """Bytes of its memory; amdsmi gives whole MiB."""
    total: int


def card(pci: str) -> Card:
    """The memory of the card at a PCI address such as "0000:c1:00.0".

    Raises
    ------
    NotSupported
        `amdsmi` is not installed, does not work, or does not know the card.
    """
    amdsmi = _ready()
    try:
        handle = amdsmi.amdsmi_get_processor_handle_from_bdf(pci)
        memory = amdsmi.amdsmi_get_gpu_vram_usage(handle)
    except Exception as error:
        raise NotSupported(f"amdsmi says nothing of the card at {pci}: {error}") from None
    return Card(int(memory["vram_used"]) << 20, int(memory["vram_total"]) << 20)


def _ready() -> Any:
    global _amdsmi
    with _lock:
        if _amdsmi is None:
            try:
                with redirect_stdout(StringIO()):  # where its library is missing, it prints so
                    loaded: Any = importlib.import_module("amdsmi")
                loaded.amdsmi_init()
            except Exception as error:  # KeyError, where its library is missing
                raise NotSupported(f"amdsmi cannot be used: {error}") from None
            _amdsmi = loaded
        return _amdsmi
