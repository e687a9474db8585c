"""What a process can do on the devices it sees, and why, in words. Decisions are functions of plain values.

HIP: `pageableMemoryAccess` of `getDeviceProperties` is the XNACK bit, and it alone says that a GPU faults and migrates;
`managedMemory` and `concurrentManagedAccess` only say that shared virtual memory is compiled in, and
`deviceGetAttribute` is not asked, since CuPy's numbers for these attributes are those of ROCm 4. CUDA:
`concurrentManagedAccess`. No operating system, architecture or environment variable decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from umarray.drivers.base import Mode, Traits
from umarray.errors import BrokenInstallation, NotSupported
from umarray.places import Device

NO_DEVICE, INSUFFICIENT_DRIVER = 100, 35  # the same numbers in CUDA and HIP


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a runtime says of one device, before any conclusion."""

    index: int
    vendor: str  # "hip" or "cuda"
    name: str
    architecture: str
    total_bytes: int
    managed_memory: bool
    concurrent_access: bool
    pageable_access: bool
    integrated: bool


def read_facts(vendor: str, index: int, properties: Mapping[str, Any]) -> DeviceFacts:
    """The facts in what CuPy's `getDeviceProperties` gives; what an old runtime does not tell counts as no."""
    if vendor == "hip":
        architecture = _text(properties.get("gcnArchName", "")) or f"gfx{properties.get('gcnArch', '?')}"
    else:
        architecture = f"sm_{properties.get('major', '?')}{properties.get('minor', '?')}"
    return DeviceFacts(
        index=index,
        vendor=vendor,
        name=_text(properties.get("name", "")) or "unnamed",
        architecture=architecture,
        total_bytes=int(properties.get("totalGlobalMem", 0)),
        managed_memory=properties.get("managedMemory", 0) == 1,
        concurrent_access=properties.get("concurrentManagedAccess", 0) == 1,
        pageable_access=properties.get("pageableMemoryAccess", 0) == 1,
        integrated=properties.get("integrated", 0) == 1,
    )


def _text(value: Any) -> str:
    return (value.decode(errors="replace") if isinstance(value, bytes) else str(value)).rstrip("\0").strip()


def device_managed(facts: DeviceFacts) -> tuple[bool, str]:
    """Whether a device faults and migrates, and the reason."""
    who = f"Device({facts.index}) ({facts.name}, {facts.architecture})"
    if not facts.managed_memory:
        return False, f"{who} has no managed memory: managedMemory is 0"
    if facts.vendor == "hip":
        if facts.pageable_access:
            return True, f"{who} faults and migrates: pageableMemoryAccess, the XNACK bit, is 1"
        return (
            False,
            f"{who} cannot fault: pageableMemoryAccess, the XNACK bit, is 0, so managed memory stays on the host",
        )
    if facts.concurrent_access:
        return True, f"{who} faults and migrates: concurrentManagedAccess is 1"
    return False, f"{who} cannot fault: concurrentManagedAccess is 0, so managed memory moves as a whole at each launch"


def device_traits(facts: DeviceFacts, readable_ranges: bool, discards: bool = False) -> Traits:
    """A device's traits; `readable_ranges` was tried on a page, `discards`: the runtime has the call."""
    managed, reason = device_managed(facts)
    reasons = [reason]
    # MI300A says neither in some ROCm versions; an iGPU is integrated too, and without faults that proves nothing.
    unified = managed and (facts.integrated or "MI300A" in facts.name)
    if unified:
        reasons.append("host and device share one memory: nothing has to move, a prefetch is a counted no-op")
    hip, prefetch = facts.vendor == "hip", managed and not unified
    if prefetch and hip:
        # Read in the sources of ROCm 6.1 and 6.2, assumed of all: a helper thread is cheap where it is not so.
        reasons.append(
            "a HIP prefetch may keep its caller until the pages have moved: it is issued from a helper thread"
        )
    if managed and not readable_ranges:
        reasons.append("advice cannot be read back from the runtime: what others set is counted as not restored")
    return Traits(
        device=Device(facts.index),
        name=facts.name,
        architecture=facts.architecture,
        total_bytes=facts.total_bytes,
        managed=managed,
        unified=unified,
        prefetch=prefetch,
        prefetch_blocks=prefetch and hip,
        readable_ranges=readable_ranges,
        coarse_grain=managed and hip and not unified,  # the advice is fatal on some APUs
        reasons=tuple(reasons),
        renew=prefetch and discards,
    )


def decide_mode(asked: str, devices: Sequence[DeviceFacts]) -> tuple[Mode, tuple[str, ...]]:
    """The mode of a process that sees `devices` (one at least), the weakest deciding; and the reasons.

    Raises
    ------
    NotSupported
        Managed mode was asked for and a device cannot.
    """
    if asked == "explicit":
        return Mode.EXPLICIT, ("UMARRAY_MODE=explicit asks for plain device memory and copies",)
    answers = [device_managed(facts) for facts in devices]
    against = tuple(reason for able, reason in answers if not able)
    if not against:
        return Mode.MANAGED, tuple(reason for _, reason in answers)
    if asked == "managed":
        raise NotSupported(
            f"UMARRAY_MODE=managed is not possible here: {'; '.join(against)}. "
            "Use UMARRAY_MODE=auto, or hide that device (HIP_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES)"
        )
    if len(against) < len(answers):
        against += ("the weakest visible device decides for the process",)
    return Mode.EXPLICIT, against


def no_device(status: int, text: str, driver_version: int) -> str:
    """Why a process has no device, from the status of counting them.

    Raises
    ------
    BrokenInstallation
        There may well be devices, and the driver or the runtime cannot use them.
    """
    if status == NO_DEVICE:
        return f"CuPy works and there is no device ({text})"
    if status == INSUFFICIENT_DRIVER and driver_version == 0:
        return f"CuPy works and there is no device driver on this machine ({text})"
    remedy = (
        "update the device's driver, or install the CuPy wheel that fits it" if status == INSUFFICIENT_DRIVER else ""
    )
    raise BrokenInstallation(
        f"CuPy is installed and cannot use the device: status {status}, {text}; "
        f"{remedy or 'repair the installation'}, or set UMARRAY_MODE=host to run without a device"
    )


def broken(cause: BaseException, wheels: Sequence[str]) -> BrokenInstallation:
    """The error for a CuPy that is installed and cannot be imported."""
    root: BaseException = cause
    while root.__cause__ is not None:
        root = root.__cause__
    detail = " ".join(str(root).split()) or type(root).__name__
    what = ", ".join(wheels) or "CuPy"
    text = f"{what} is installed and cannot be imported: {detail}"
    if len(wheels) > 1:
        text += "; these wheels overwrite each other: uninstall all of them and install the one for this device"
    else:
        text += "; install the runtime that this wheel was built for, or the wheel for the runtime that is here"
    return BrokenInstallation(f"{text}. UMARRAY_MODE=host runs without a device")


def advice(devices: Sequence[DeviceFacts], environ: Mapping[str, str]) -> tuple[str, ...]:
    """On AMD: what to set outside the process, and what it would change. umarray sets none of it."""
    lines = []
    xnack = environ.get("HSA_XNACK", "").strip()
    for facts in devices:
        if facts.vendor != "hip":
            continue
        who = f"Device({facts.index}) ({facts.architecture})"
        if facts.pageable_access:
            lines.append(f"{who}: managed mode works; HSA_XNACK=0 would turn it into explicit mode")
        elif not facts.architecture.startswith("gfx9"):
            lines.append(
                f"{who}: this family cannot retry faults, HSA_XNACK changes nothing; explicit mode is right here"
            )
        elif xnack == "1":
            lines.append(
                f"{who}: HSA_XNACK=1 is set and the bit is still 0: the kernel (HMM), its amdgpu driver or a virtual "
                "function does not allow it; nothing in this process can change that"
            )
        else:
            lines.append(
                f"{who}: set HSA_XNACK=1 before the process starts; where the kernel allows it, managed memory then "
                "migrates at faults and umarray runs in managed mode instead of explicit (ordinary host memory becomes "
                "migratable too)"
            )
    return tuple(lines)


def cuda_version(number: int) -> str:
    """CUDA's number as people write it: 13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"


def hip_version(number: int) -> str:
    """HIP's number as people write it (hip_version.h): 50221153 is 5.2.21153."""
    return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"
