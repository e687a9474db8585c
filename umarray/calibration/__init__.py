"""What moving bytes costs on this device: measured once and remembered, or stated defaults."""

from umarray.calibration.curve import Curve
from umarray.calibration.figures import Calibration
from umarray.calibration.known import current

__all__ = ["Calibration", "Curve", "current"]
