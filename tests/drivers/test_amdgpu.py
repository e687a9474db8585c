from __future__ import annotations

from pathlib import Path

import pytest

from tests.drivers import amd_trees
from umarray.drivers import amdgpu


def test_mi210(tmp_path: Path) -> None:
    first, second = amdgpu.nodes(amd_trees.mi210(tmp_path))
    assert (first.number, first.gpu_id, first.name, first.gfx) == (1, 36652, "aldebaran", "gfx90a")
    assert (first.pci, second.pci, first.render_minor) == ("0000:c1:00.0", "0000:e3:00.0", 128)
    assert first.memory_bytes == 68702699520 and not first.unified


def test_mi300a(tmp_path: Path) -> None:
    (node,) = amdgpu.nodes(amd_trees.mi300a(tmp_path))
    assert (node.gfx, node.pci, node.unified) == ("gfx942", "0001:01:00.0", True)


def test_radeon_and_the_small_gpu_beside_it(tmp_path: Path) -> None:
    card, small = amdgpu.nodes(amd_trees.radeon(tmp_path))
    assert (card.gfx, card.unified, card.unique_id) == ("gfx1100", False, 0)
    assert (small.gfx, small.unified) == ("gfx90c", True)


def test_levels(tmp_path: Path) -> None:
    first, second = amdgpu.nodes(amd_trees.mi210(tmp_path))
    found = amdgpu.levels(first, tmp_path)
    assert (found.vram_used, found.vram_total, found.gtt_used) == (6402629632, 68702699520, 15630336)
    assert (found.process_vram, amdgpu.levels(second, tmp_path).process_vram) == (4194304, None)


def test_what_a_card_has_no_file_for_is_none(tmp_path: Path) -> None:
    card, small = amdgpu.nodes(amd_trees.radeon(tmp_path))
    assert amdgpu.levels(card, tmp_path).gtt_total is None
    assert amdgpu.levels(small, tmp_path) == amdgpu.Levels(None, None, None, None, None)
    assert amdgpu.bus_traffic(card, tmp_path) is None


def test_bus_traffic_is_packets_of_the_largest_size(tmp_path: Path) -> None:
    first, _ = amdgpu.nodes(amd_trees.mi210(tmp_path))
    assert amdgpu.bus_traffic(first, tmp_path) == amdgpu.BusTraffic(1048576 * 256, 2048 * 256)


def test_without_a_kfd_there_are_no_nodes(tmp_path: Path) -> None:
    assert amdgpu.nodes(tmp_path) == ()


def test_a_node_that_may_not_be_read_is_left_out(tmp_path: Path) -> None:
    amd_trees.mi210(tmp_path)
    (tmp_path / "sys/class/kfd/kfd/topology/nodes/1/properties").unlink()
    assert [node.gpu_id for node in amdgpu.nodes(tmp_path)] == [50237]


@pytest.mark.parametrize("name", ["name", "mem_banks/0/properties", "io_links/0/properties"])
@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"heap_type 1\nsize_in_bytes \xc2\xb2\n"])
def test_a_gpu_of_which_less_is_known_is_counted_still(name: str, content: bytes | None, tmp_path: Path) -> None:
    """Or the devices after it would be taken for others."""
    amd_trees.mi210(tmp_path)
    file = tmp_path / "sys/class/kfd/kfd/topology/nodes/1" / name
    file.unlink()
    file.mkdir() if content is None else file.write_bytes(content)
    first, second = amdgpu.nodes(tmp_path)
    assert (first.number, second.number, second.name != "") == (1, 2, True) and first.memory_bytes >= 0


def test_nodes_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    amd_trees.mi210(tmp_path)
    nodes = tmp_path / "sys/class/kfd/kfd/topology/nodes"
    (nodes / "2").rename(nodes / "10")
    (nodes / "1").rename(nodes / "9")
    assert [node.number for node in amdgpu.nodes(tmp_path)] == [9, 10]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, [0, 1]),
        ({"HIP_VISIBLE_DEVICES": "1"}, [1]),
        ({"HIP_VISIBLE_DEVICES": "1,0"}, [1, 0]),
        ({"HIP_VISIBLE_DEVICES": "0,7,1"}, [0]),
        ({"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}, [0]),
        ({"CUDA_VISIBLE_DEVICES": "1"}, [1]),
        ({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}, [1]),
        ({"ROCR_VISIBLE_DEVICES": "GPU-1234567890abcde1"}, [1]),
        ({"ROCR_VISIBLE_DEVICES": "-1"}, []),
        ({"ROCR_VISIBLE_DEVICES": "\u00b2"}, []),
        ({"HIP_VISIBLE_DEVICES": ""}, [0, 1]),
    ],
)
def test_visible(environment: dict[str, str], expected: list[int], tmp_path: Path) -> None:
    found = amdgpu.nodes(amd_trees.mi210(tmp_path))
    assert amdgpu.visible(found, environment) == tuple(found[index] for index in expected)
