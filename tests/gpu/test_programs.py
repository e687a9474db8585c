"""The demo and the examples on a real card."""

from __future__ import annotations

from tests.contracts.programs_contract import ProgramsContract


class TestPrograms(ProgramsContract):
    pass
