"""What AMD's kernel driver says in files: the KFD topology and a card's memory, bus and name. No root is needed.

Formats: Linux, Documentation/gpu/amdgpu/driver-misc.rst (mem_info_*), amdgpu_pm.c (pcie_bw), kfd_topology.c and
libhsakmt's topology.c (nodes). Every function takes the root of the file system.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_NODES = "sys/class/kfd/kfd/topology/nodes"
_ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class Node:
    """A GPU in the KFD topology."""

    number: int
    gpu_id: int
    """What events call it; 0 is the host."""
    name: str
    gfx: str
    """"gfx90a"."""
    pci: str
    """"0000:c1:00.0"; several partitions of one card may share it."""
    render_minor: int
    memory_bytes: int
    """Of its own memory banks; on an APU of the part that is set aside for it, which may be nothing."""
    unified: bool
    """CPU cores and GPU are in one node, or in one package (an APU)."""
    unique_id: int
    """0 where the card has none."""


def nodes(root: Path = _ROOT) -> tuple[Node, ...]:
    """The GPUs of the topology that this process may see, in the order of their nodes; empty without a KFD.

    Notes
    -----
    In a container the properties of a GPU that was not passed in cannot be read: it is left out.
    """
    found = []
    for folder in sorted((root / _NODES).glob("*"), key=_number):
        try:
            gpu_id = int((folder / "gpu_id").read_text())
            if gpu_id:
                found.append(_node(folder, gpu_id))
        except (OSError, ValueError, KeyError):
            continue
    return tuple(found)


def _node(folder: Path, gpu_id: int) -> Node:
    said = _properties(folder / "properties")
    location, domain = said["location_id"], said.get("domain", 0)
    banks = [_properties_if_any(path) for path in sorted(folder.glob("mem_banks/*/properties"))]
    version = said.get("gfx_target_version", 0)
    return Node(
        number=int(folder.name),
        gpu_id=gpu_id,
        name=_text(folder / "name"),
        gfx=f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}" if version else "",
        pci=f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7:x}",
        render_minor=said.get("drm_render_minor", -1),
        memory_bytes=sum(bank.get("size_in_bytes", 0) for bank in banks if bank.get("heap_type") in (1, 2)),
        unique_id=said.get("unique_id", 0),
        unified=bool(said.get("cpu_cores_count", 0)) or _beside_the_host(folder),
    )


def _beside_the_host(folder: Path) -> bool:
    """Whether a link to a node of the host stays within the package, as an APU's does."""
    for path in folder.glob("io_links/*/properties"):
        link = _properties_if_any(path)
        peer = folder.parent / str(link.get("node_to", -1)) / "gpu_id"
        try:
            host = int(peer.read_text()) == 0
        except (OSError, ValueError):
            continue
        if host and link.get("type") == _XGMI and link.get("weight", 0) < _NEAR:
            return True
    return False


_XGMI, _NEAR = 11, 15  # HSA_IOLINK_TYPE_XGMI; kfd_crat.c: KFD_CRAT_INTRA_SOCKET_WEIGHT 13, KFD_CRAT_XGMI_WEIGHT 15


def visible(found: Sequence[Node], environment: Mapping[str, str]) -> tuple[Node, ...]:
    """The nodes in the order in which HIP numbers devices, those that the environment hides left out.

    Notes
    -----
    ROCR_VISIBLE_DEVICES chooses first (by number, or "GPU-" and the unique id in hex), then HIP_VISIBLE_DEVICES, or
    CUDA_VISIBLE_DEVICES where that is not set, among what is left; what comes after an entry that names none is hidden
    (ROCm documentation, "GPU isolation techniques").
    """
    left = tuple(found)
    for names in (("ROCR_VISIBLE_DEVICES",), ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")):
        asked = next((environment[name] for name in names if environment.get(name)), None)
        if asked is not None:
            left = _chosen(left, asked.split(","))
    return left


def _chosen(found: tuple[Node, ...], asked: Iterable[str]) -> tuple[Node, ...]:
    chosen: list[Node] = []
    for text in asked:
        text = text.strip()
        if text.isdecimal() and int(text) < len(found):
            chosen.append(found[int(text)])
            continue
        named = [node for node in found if text.upper() == f"GPU-{node.unique_id:016x}".upper()]
        if not named:
            break
        chosen += named
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class Levels:
    """A card's memory at one moment, of all processes together. None: this card has no such file."""

    vram_used: int | None
    vram_total: int | None
    gtt_used: int | None
    """Bytes of host memory that the card has mapped for itself."""
    gtt_total: int | None
    process_vram: int | None
    """Of `vram_used`: this process's part, as the KFD accounts it."""


def levels(node: Node, root: Path = _ROOT) -> Levels:
    """The memory of a card: exact, as the driver accounts it; cheap to ask."""
    device = _device(node, root)
    names = ("mem_info_vram_used", "mem_info_vram_total", "mem_info_gtt_used", "mem_info_gtt_total")
    own = root / f"sys/class/kfd/kfd/proc/{os.getpid()}/vram_{node.gpu_id}"
    vram_used, vram_total, gtt_used, gtt_total = (_whole(device / name) for name in names)
    return Levels(vram_used, vram_total, gtt_used, gtt_total, _whole(own))


@dataclass(frozen=True, slots=True)
class BusTraffic:
    """What a card received and sent over PCIe in one second: an estimate, all that crosses the bus."""

    received: int
    """Bytes; at most, since packets may be shorter than the largest."""
    sent: int


def bus_traffic(node: Node, root: Path = _ROOT) -> BusTraffic | None:
    """The traffic of the next second; None where the card has no such counters (APUs, many Radeons).

    Notes
    -----
    The kernel counts for a whole second before it answers: never on a path that matters.
    """
    try:
        received, sent, largest = map(int, (_device(node, root) / "pcie_bw").read_text().split())
    except (OSError, ValueError):
        return None
    return BusTraffic(received * largest, sent * largest)


def _device(node: Node, root: Path) -> Path:
    return root / f"sys/class/drm/renderD{node.render_minor}/device"


def _whole(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""


def _properties_if_any(path: Path) -> dict[str, int]:
    """Of what is good to know: a GPU that has none counts still, or devices after it had the wrong number."""
    try:
        return _properties(path)
    except (OSError, ValueError):
        return {}


def _properties(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in path.read_text().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].removeprefix("-").isdecimal()}


def _number(folder: Path) -> int:
    return int(folder.name) if folder.name.isdecimal() else -1
