"""Errors and warnings: each names what was wrong, the value, and the remedy.

Every error is an `UmarrayError` and also what a caller would expect anyway (`MemoryError`, `NotImplementedError`,
`RuntimeError`, ...). Plain misuse is a `TypeError` or a `ValueError` and needs no class of ours.
"""

from __future__ import annotations


class UmarrayError(Exception):
    """Base of every error that umarray defines."""


class OutOfMemory(UmarrayError, MemoryError):
    """A request did not fit; nothing has changed.

    Attributes
    ----------
    requested, used, limit : int
        Bytes: what was asked, what is in use, and the limit that it met.
    detail : str
        What holds the memory, and the remedy, in words.

    Notes
    -----
    Pickles with all of its fields, so that it can cross a process.
    """

    def __init__(self, requested: int, used: int, limit: int, detail: str = "") -> None:
        super().__init__(requested, used, limit, detail)
        self.requested = requested
        self.used = used
        self.limit = limit
        self.detail = detail

    def __str__(self) -> str:
        text = f"out of memory: asked for {self.requested:,} bytes, {self.used:,} in use of a limit of {self.limit:,}"
        return f"{text}; {self.detail}" if self.detail else text


class NotSupported(UmarrayError, NotImplementedError):
    """This device, runtime or mode cannot do what was asked, and no fallback would be honest."""


class ClosedError(UmarrayError, ValueError):
    """A pool, scope or pipeline was used after it was closed."""


class DriverError(UmarrayError, RuntimeError):
    """A runtime call failed.

    Attributes
    ----------
    call : str
        The runtime function.
    code : int
        Its status, as the vendor numbers it.
    """

    def __init__(self, call: str, code: int, text: str) -> None:
        super().__init__(call, code, text)
        self.call = call
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return f"{self.call} failed with status {self.code}: {self.text}"


class BrokenInstallation(UmarrayError, ImportError):
    """CuPy or the vendor's runtime is installed and does not work; the text says what is broken."""


class ForkedProcess(UmarrayError, RuntimeError):
    """A forked child used a device that its parent had opened; start children with the spawn method."""


class EscapeError(UmarrayError, RuntimeError):
    """Arrays made inside an epoch outlived it, and the epoch was told to raise."""


class PipelineError(UmarrayError, RuntimeError):
    """A pipeline could not go on; the text says which stage, and what to do."""


class UmarrayWarning(UserWarning):
    """Base of every warning that umarray issues."""


class EscapeWarning(UmarrayWarning):
    """Arrays made inside an epoch outlived it: they keep their memory, and the epoch after carves around them."""


class UnusedScopeWarning(UmarrayWarning):
    """A scope was made and never entered, so it did nothing."""


class SparseViewWarning(UmarrayWarning):
    """A hint was given on a view that spans far more bytes than it holds elements in."""
