"""File trees of machines with AMD cards: an MI210, an MI300A and a Radeon.

Written from the documentation and the kernel's sources, not recorded on hardware: the order and names of the node's
properties are those of kfd_topology.c (node_show, iolink_show, mem_show), the card's files those of amdgpu_vram_mgr.c,
amdgpu_gtt_mgr.c and amdgpu_pm.c. Figures are plausible; what is asked of them holds whatever they are.
"""

from __future__ import annotations

import os
from pathlib import Path

_NODE = """\
cpu_cores_count {cores}
simd_count {simds}
mem_banks_count 1
caches_count 218
io_links_count 1
p2p_links_count 0
cpu_core_id_base 0
simd_id_base 2147487744
max_waves_per_simd 8
lds_size_in_kb 64
gds_size_in_kb 0
num_gws 64
wave_front_size {wave}
array_count 8
simd_arrays_per_engine 1
cu_per_simd_array 16
simd_per_cu 4
max_slots_scratch_cu 32
gfx_target_version {gfx}
vendor_id {vendor}
device_id {device}
location_id {location}
domain {domain}
drm_render_minor {minor}
hive_id 0
num_sdma_engines 2
num_sdma_xgmi_engines 3
num_sdma_queues_per_engine 8
num_cp_queues 24
max_engine_clk_fcompute 1700
local_mem_size 0
fw_version 78
capability 1554997632
debug_prop 1511
sdma_fw_version 8
unique_id {unique}
num_xcc 1
max_engine_clk_ccompute 3400
"""
_BANK = "heap_type {heap}\nsize_in_bytes {size}\nflags 0\nwidth 4096\nmem_clk_max 1600\n"
_LINK = (
    "type {type}\nversion_major 0\nversion_minor 0\nnode_from {source}\nnode_to {to}\nweight {weight}\n"
    "min_latency 0\nmax_latency 0\nmin_bandwidth 0\nmax_bandwidth 0\nrecommended_transfer_size 0\n"
    "recommended_sdma_engine_id_mask 0\nflags 1\n"
)
_PCIE, _XGMI = 2, 11


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _node(
    root: Path, number: int, gpu_id: int, name: str, *, bank: tuple[int, int], link: str = "", **said: int
) -> None:
    folder = root / f"sys/class/kfd/kfd/topology/nodes/{number}"
    values = dict.fromkeys(
        ("cores", "simds", "wave", "gfx", "vendor", "device", "location", "domain", "minor", "unique"), 0
    )
    _write(folder / "gpu_id", f"{gpu_id}\n")
    _write(folder / "name", f"{name}\n")
    _write(folder / "properties", _NODE.format(**{**values, **said}))
    _write(folder / "mem_banks/0/properties", _BANK.format(heap=bank[0], size=bank[1]))
    if link:
        _write(folder / "io_links/0/properties", link)


def _host(root: Path, cores: int, size: int, number: int = 0) -> None:
    _node(root, number, 0, "", bank=(0, size), cores=cores, simds=0)


def _card(root: Path, minor: int, **files: str) -> None:
    for name, text in files.items():
        _write(root / f"sys/class/drm/renderD{minor}/device/{name}", f"{text}\n")


def mi210(root: Path) -> Path:
    """Two MI210, each with its counters of the bus; this process has memory on the first."""
    _host(root, 64, 540 << 30)
    for index, (gpu_id, location) in enumerate(((36652, 0xC100), (50237, 0xE300))):
        link = _LINK.format(type=_PCIE, source=index + 1, to=0, weight=20)
        _node(
            root,
            index + 1,
            gpu_id,
            "aldebaran",
            bank=(1, 68702699520),
            link=link,
            simds=416,
            wave=64,
            gfx=90010,
            vendor=4098,
            device=29711,
            location=location,
            minor=128 + index,
            unique=0x1234567890ABCDE0 + index,
        )
        _card(
            root,
            128 + index,
            mem_info_vram_used="6402629632",
            mem_info_vram_total="68702699520",
            mem_info_gtt_used="15630336",
            mem_info_gtt_total="270582939648",
            pcie_bw="1048576 2048 256",
        )
    _write(root / f"sys/class/kfd/kfd/proc/{os.getpid()}/vram_36652", "4194304\n")
    return root


def mi300a(root: Path) -> Path:
    """One MI300A: the GPU is a node of its own beside the host's, in one package. No PCIe counters."""
    _host(root, 24, 128 << 30)
    link = _LINK.format(type=_XGMI, source=1, to=0, weight=13)
    said = {"simds": 912, "wave": 64, "gfx": 90402, "vendor": 4098, "device": 29856, "location": 0x100, "domain": 1}
    _node(root, 1, 28851, "ip discovery", bank=(1, 128 << 30), link=link, minor=128, unique=7, **said)
    _card(
        root,
        128,
        mem_info_vram_used="301989888",
        mem_info_vram_total="137438953472",
        mem_info_gtt_used="0",
        mem_info_gtt_total="137438953472",
    )
    return root


def radeon(root: Path) -> Path:
    """A Radeon RX 7900 XTX beside a processor's small GPU, which is one node with the cores in older kernels."""
    _node(root, 0, 0, "", bank=(0, 32 << 30), cores=16)
    link = _LINK.format(type=_PCIE, source=1, to=0, weight=20)
    said = {"simds": 192, "wave": 32, "gfx": 110000, "vendor": 4098, "device": 29772, "location": 0x300, "minor": 129}
    _node(root, 1, 45058, "navi31", bank=(1, 25753026560), link=link, **said)
    _node(root, 2, 5710, "raven", bank=(1, 536870912), cores=8, simds=44, wave=64, gfx=90012, location=0x900, minor=130)
    _card(root, 129, mem_info_vram_used="2147483648", mem_info_vram_total="25753026560", mem_info_gtt_used="268435456")
    return root
