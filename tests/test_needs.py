"""What is missing on a machine is told apart from what must not be missing."""

from __future__ import annotations

import importlib.metadata

import pytest

from tests import needs
from umarray.hipemu import rocm


@pytest.fixture
def wheels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    installed: list[str] = []

    def distribution(name: str) -> None:
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(needs.importlib.metadata, "distribution", distribution)
    monkeypatch.setattr(needs.shutil, "which", lambda name: f"/usr/bin/{name}" if name == "g++" else None)
    for name in ("HIPEMU", "HIPEMU_CXX"):
        monkeypatch.delenv(name, raising=False)
    return installed


@pytest.mark.parametrize("number", rocm.VERSIONS)
def test_either_wheel_will_do(wheels: list[str], number: str) -> None:
    wheels.append(rocm.VERSIONS[number].wheel)
    assert needs.installed_wheel() == rocm.VERSIONS[number] and needs.missing_for_emulation() == ""


def test_no_wheel_and_no_compiler_are_named(wheels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cupy-rocm-5-0, cupy-rocm-7-0 is installed" in needs.missing_for_emulation()
    wheels.append("cupy-rocm-5-0")
    monkeypatch.setenv("HIPEMU_CXX", "c++-of-nobody")
    assert needs.missing_for_emulation() == "there is no C++ compiler (c++-of-nobody)"
    monkeypatch.setenv("HIPEMU", "1")
    assert needs.missing_for_emulation() == "this process is emulated already"


@pytest.mark.parametrize(("value", "strict"), [("true", True), ("True", True), ("", False), ("false", False)])
def test_ci_is_what_the_variable_says(value: str, strict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", value)
    assert needs.in_ci() is strict
    monkeypatch.delenv("CI")
    assert not needs.in_ci()
