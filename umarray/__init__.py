"""umarray: managed memory for CuPy that is worth using."""

from umarray._version import __version__
from umarray.places import HOST, Device

__all__ = ["HOST", "Device", "__version__"]
