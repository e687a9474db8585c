"""What the recording driver knows of each page of an allocation: where it is, what was asked, what was advised."""

from __future__ import annotations

from typing import Any

import numpy as np

from umarray.drivers.base import Advice, Attribute
from umarray.places import HOST, Device, Place

NOWHERE = -2


def number(place: Place) -> int:
    return place.id if isinstance(place, Device) else -1


def place_of(value: int) -> Place | bool:
    return False if value == NOWHERE else HOST if value == -1 else Device(value)


class Pages:
    """The pages of one managed allocation. Ranges are byte offsets and round outward, as runtimes do."""

    def __init__(self, nbytes: int, page_size: int, devices: int) -> None:
        count = -(-nbytes // page_size)
        self.page_size = page_size
        self.where = np.full(count, NOWHERE, np.int16)
        self.asked = np.full(count, NOWHERE, np.int16)
        self.preferred = np.full(count, NOWHERE, np.int16)
        self.read_mostly = np.zeros(count, bool)
        self.coarse = np.zeros(count, bool)
        self.accessed = np.zeros((devices + 1, count), bool)  # the last row (-1) is the host's
        self.foreign: Any = None

    def span(self, start: int, nbytes: int) -> slice:
        return slice(start // self.page_size, -(-(start + nbytes) // self.page_size))

    def touch(self, start: int, nbytes: int, place: int) -> int:
        """An access from `place`: pages elsewhere move there; how many that were."""
        where = self.where[self.span(start, nbytes)]
        faults = int(np.count_nonzero(where != place))
        where[:] = place
        return faults

    def advise(self, span: slice, advice: Advice, place: int, on: bool) -> None:
        if advice is Advice.READ_MOSTLY:
            self.read_mostly[span] = on
        elif advice is Advice.PREFERRED_LOCATION:
            self.preferred[span] = place if on else NOWHERE
        elif advice is Advice.ACCESSED_BY:
            self.accessed[place, span] = on
        else:
            self.coarse[span] = on

    def read(self, span: slice, attribute: Attribute) -> Any:
        """As the runtimes answer: what holds for every page of the range, else none."""
        if attribute is Attribute.READ_MOSTLY:
            return bool(self.read_mostly[span].all())
        if attribute is Attribute.ACCESSED_BY:
            rows = self.accessed[:, span].all(axis=1)
            devices = tuple(Device(index) for index in range(len(rows) - 1) if rows[index])
            return (*devices, HOST) if rows[-1] else devices
        values = self.preferred[span] if attribute is Attribute.PREFERRED_LOCATION else self.asked[span]
        return place_of(int(values[0])) if (values == values[0]).all() else False
