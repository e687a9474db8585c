"""calibrate: measure a device once, and remember it."""

from __future__ import annotations

from umarray.calibration import store
from umarray.calibration.figures import Calibration
from umarray.calibration.known import current, set_current
from umarray.calibration.measure import measure
from umarray.drivers import get_driver
from umarray.drivers.base import check_place
from umarray.places import Device, Host, as_place


def calibrate(on: object = None, *, force: bool = False, progress: bool | None = None) -> Calibration:
    """Measure what moving bytes costs on a device, in under two seconds; a second time, give what was found.

    Parameters
    ----------
    on : Device, int or cupy.cuda.Device, optional
        Which; the current one by default.
    force : bool
        Measure anew, whatever is stored.
    progress : bool, optional
        Show a progress bar; by default where somebody looks.

    Returns
    -------
    Calibration
        Seconds by bytes, each with its source. `print` shows them. On a machine without a device there is nothing to
        measure, and it says so.

    Raises
    ------
    TypeError, ValueError
        What is no device, or one that is not there.
    OutOfMemory
        Less than 8 MiB are free on the device or on the host.

    Notes
    -----
    Takes at most 160 MiB, of which 32 managed, or an eighth of what is free for each of its five buffers. Stored in the
    user's cache folder, for this device and these versions. The first time ever it also compiles a small kernel. Run it
    on an idle device; processes that calibrate wait for one another. On an emulated device it measures this CPU, which
    says nothing of a card: umarray's own decisions keep the stated defaults there.

    Examples
    --------
    >>> import umarray as um
    >>> found = um.calibrate()
    >>> found.measured or found.device == "no device"
    True
    """
    if not isinstance(force, bool):
        raise TypeError(f"force must be True or False, not {force!r}")
    driver = get_driver()
    place = Device(driver.current_device()) if on is None else as_place(on)
    if isinstance(place, Host):
        raise ValueError("the host cannot be calibrated by itself: give a device")
    check_place(driver, place)
    device = place.id
    if not driver.device_count():
        return current(device)
    key = store.key_of(driver, device)
    found = None if force else store.load(key)
    if found is None:
        with store.alone():
            found = None if force else store.load(key)  # another process may have measured meanwhile
            if found is None:
                found = measure(driver, device, progress)
                store.save(key, found)
    if not store.emulated(key):
        set_current(device, found)
    return found
