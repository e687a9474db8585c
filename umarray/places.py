"""Places: where bytes live, either a device or the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final


@final
@dataclass(frozen=True, slots=True, order=True)
class Device:
    """One GPU, by its index in this process.

    Parameters
    ----------
    id : int
        Index from 0, as CuPy numbers devices. Whether it exists is checked where it is used.

    Examples
    --------
    >>> import umarray as um
    >>> um.Device(0)
    Device(0)
    """

    id: int

    def __post_init__(self) -> None:
        if isinstance(self.id, bool) or not hasattr(type(self.id), "__index__"):
            raise TypeError(f"a device's id must be an int, not {self.id!r}")
        object.__setattr__(self, "id", self.id.__index__())
        if self.id < 0:
            raise ValueError(f"a device's id must be 0 or more, not {self.id}; the CPU is umarray.HOST")

    def __repr__(self) -> str:
        return f"Device({self.id})"


@final
class Host:
    """The CPU's memory; there is one, `HOST`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "HOST"

    def __reduce__(self) -> str:
        return "HOST"  # pickles to the one instance


HOST: Final = Host()
Place: TypeAlias = Device | Host


def as_place(value: Any) -> Place:
    """Turn what a caller may write for a place into a `Place`.

    Parameters
    ----------
    value : Device, HOST, "host", int or cupy.cuda.Device
        An int is a device's index; a `cupy.cuda.Device` gives its own.

    Raises
    ------
    TypeError, ValueError
        Anything else; the text quotes it.
    """
    if isinstance(value, (Device, Host)):
        return value
    if isinstance(value, str):
        if value == "host":
            return HOST
        raise ValueError(f'unknown place {value!r}: write umarray.HOST, "host", or a device such as umarray.Device(0)')
    if isinstance(value, bool):
        raise TypeError(f"a place cannot be {value!r}: write umarray.HOST or umarray.Device(0)")
    if hasattr(type(value), "__index__"):
        return Device(value.__index__())
    if type(value).__module__.startswith("cupy") and type(value).__name__ == "Device":
        return Device(int(value.id))
    raise TypeError(f"a place must be umarray.HOST or a device, not {value!r}")
