"""What a new arena is advised to be: at home on its device and, on HIP, coarse-grained where nothing speaks against it.

A preferred location keeps pages from bouncing: another device then reads them where they are. Managed memory of HIP is
fine-grained unless told otherwise, and system-scope atomics in it have been seen to be 100 times slower on an MI300X;
coarse grain is coherent where a kernel ends, which is all that one device and host views need. Several devices may
share a page while kernels run, so with more than one of them it is left as the runtime has it.
"""

from __future__ import annotations

from umarray.drivers.base import Advice, Allocation, Driver, Kind
from umarray.errors import DriverError
from umarray.log import warn_once
from umarray.places import Device


def prefer(driver: Driver, allocation: Allocation, coarse_grain: bool | None) -> None:
    """Advise a new arena; whatever kind it is, and whatever the runtime makes of it.

    Parameters
    ----------
    coarse_grain : bool, optional
        As of `Pool`: True and False as they say; None where one device is there, and has it.
    """
    place = allocation.place
    if allocation.kind is not Kind.MANAGED or not isinstance(place, Device):
        return
    traits = driver.traits(place.id)
    wanted = traits.coarse_grain and driver.device_count() == 1 if coarse_grain is None else coarse_grain
    hints = ([] if traits.unified else [Advice.PREFERRED_LOCATION]) + ([Advice.COARSE_GRAIN] if wanted else [])
    try:
        for advice in hints if traits.managed else ():
            driver.advise(allocation.address, allocation.nbytes, advice, place, True)
    except DriverError as error:  # a hint: the memory is good without it
        warn_once("a new arena could not be advised", error=error)
