"""Pictures of what happened, readable without colour: `timeline`, `residency`, `arena_map` and `faults`.

They need matplotlib (the extra ``plot``), which is imported when the first one is drawn, and leave pyplot alone.
"""

from umarray.observe.pictures.arena import arena_map
from umarray.observe.pictures.faults import faults
from umarray.observe.pictures.picture import Picture
from umarray.observe.pictures.residency import residency
from umarray.observe.pictures.timeline import timeline

__all__ = ["Picture", "arena_map", "faults", "residency", "timeline"]
