"""Managed memory for CuPy that is worth using: a pool, scopes and a pipeline, on a GPU or on none.

Importing umarray loads no GPU library and starts no device; the first call that needs one does.

`umarray.residency`, the function, stands where the package of the same name would: import from that package with
``from umarray.residency.scopes import ...``.
"""

from typing import Any

from umarray._version import __version__
from umarray.calibration.calibrate import calibrate
from umarray.drivers.capabilities import Capabilities, capabilities
from umarray.errors import (
    BrokenInstallation,
    ClosedError,
    DriverError,
    EscapeError,
    EscapeWarning,
    ForkedProcess,
    NotSupported,
    OutOfMemory,
    PipelineError,
    SparseViewWarning,
    UmarrayError,
    UmarrayWarning,
    UnusedScopeWarning,
)
from umarray.memory import (
    asarray,
    asnumpy,
    empty,
    install,
    pool,
    record_use,
    uninstall,
    zeros,
)
from umarray.observe.annotate import annotate
from umarray.observe.explain import explain
from umarray.observe.trace import trace
from umarray.observe.watch import watch
from umarray.pipeline.chunks import chunks
from umarray.pipeline.pipeline import Pipeline
from umarray.pipeline.structure import Spec
from umarray.places import HOST, Device
from umarray.residency.access import access
from umarray.residency.export import dlpack
from umarray.residency.host_view import host_view
from umarray.residency.report import residency
from umarray.residency.role import role
from umarray.residency.scopes import advise, move, prefetch

__all__ = [
    "BrokenInstallation",
    "Capabilities",
    "ClosedError",
    "Device",
    "DriverError",
    "EscapeError",
    "EscapeWarning",
    "ForkedProcess",
    "HOST",
    "ManagedMemoryPool",
    "NotSupported",
    "OutOfMemory",
    "Pipeline",
    "PipelineError",
    "SparseViewWarning",
    "Spec",
    "UmarrayError",
    "UmarrayWarning",
    "UnusedScopeWarning",
    "__version__",
    "access",
    "advise",
    "annotate",
    "asarray",
    "asnumpy",
    "calibrate",
    "capabilities",
    "chunks",
    "dlpack",
    "empty",
    "explain",
    "host_view",
    "install",
    "move",
    "pool",
    "prefetch",
    "record_use",
    "residency",
    "role",
    "trace",
    "uninstall",
    "watch",
    "xp",
    "zeros",
]


def __getattr__(name: str) -> Any:
    """`xp` and `ManagedMemoryPool` depend on the mode, so the first look at them chooses the driver."""
    if name == "xp":
        from umarray.drivers import get_driver

        return get_driver().xp
    if name == "ManagedMemoryPool":
        from umarray import memory

        return memory.ManagedMemoryPool
    if name in ("load_ipython_extension", "unload_ipython_extension"):  # %load_ext umarray
        from umarray.observe import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
