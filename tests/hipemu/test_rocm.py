"""Which ROCm the device answers as: by option, by environment variable, by the installed wheel."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from umarray.hipemu import build, environment, rocm
from umarray.hipemu.command import main

from .conftest import ROCM, ROOT, Run, needs_emulator, needs_rocm7


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    wheels: list[str] = []
    monkeypatch.delenv("HIPEMU_ROCM", raising=False)
    monkeypatch.setattr(rocm, "_installed", lambda: wheels)
    return wheels


@pytest.mark.parametrize(("wheels", "number"), [(["cupy-rocm-5-0"], 5), (["cupy-rocm-7-0"], 7), ([], 5)])
def test_the_installed_wheel_chooses(installed: list[str], wheels: list[str], number: int) -> None:
    installed += wheels
    assert rocm.choose().number == number


@pytest.mark.parametrize("wheels", [["cupy-rocm-4-3"], ["cupy-rocm-7-1"], ["cupy-rocm-5-0", "cupy-rocm-7-0"]])
def test_wheels_that_do_not_tell_are_an_error_that_names_the_option(installed: list[str], wheels: list[str]) -> None:
    installed += wheels
    with pytest.raises(ValueError, match=f"rocm: {', '.join(wheels)} installed .*--rocm 5 or 7"):
        rocm.choose()


def test_the_variable_comes_before_the_wheel(installed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed.append("cupy-rocm-5-0")
    monkeypatch.setenv("HIPEMU_ROCM", "7")
    assert rocm.choose().number == 7


@pytest.mark.parametrize("name", ["6", "7.0", "seven", " "])
def test_an_unknown_version_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPEMU_ROCM", name)
    with pytest.raises(ValueError, match=r"wanted 5 or 7"):
        rocm.choose()
    with pytest.raises(ValueError, match=r"wanted 5 or 7"):
        environment(rocm=name)


def test_the_command_says_so_with_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--rocm", "6", "--", "true"])
    assert caught.value.code == 2 and "rocm: '6' (wanted 5 or 7)" in capsys.readouterr().err


def test_distributions_are_found_under_any_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    class Distribution:
        def __init__(self, name: str | None) -> None:
            self.metadata = {"Name": name}

    names: Sequence[str | None] = ("Cupy_ROCm_7_0", "numpy", None, "cupy-cuda12x")
    monkeypatch.setattr(rocm.importlib.metadata, "distributions", lambda: map(Distribution, names))
    assert rocm._installed() == ["cupy-rocm-7-0"]


def test_each_version_has_its_lists_of_symbols_and_its_exports() -> None:
    for version in rocm.VERSIONS.values():
        assert (build.NATIVE / "symbols" / f"rocm{version.number}").is_dir()
        assert (build.NATIVE / f"exports_rocm{version.number}.map").is_file()


def test_builds_for_two_versions_do_not_share_a_folder() -> None:
    cxx = build.compiler()
    folders = [build._digest(cxx, version) for version in rocm.VERSIONS.values()]
    assert len({*folders}) == len(folders) and folders[0].startswith("rocm5-")


@needs_emulator
def test_the_program_s_runtime_is_the_wheel_s(emulated: Run) -> None:
    emulated(f"assert rt.runtimeGetVersion() // 10_000_000 == {ROCM} == rt.driverGetVersion() // 10_000_000")


@needs_rocm7
@needs_emulator
def test_hiprtc_is_a_library_of_its_own_in_rocm_7(emulated: Run) -> None:
    emulated(
        """
        runtime = h.control.library()
        for name in ("hiprtcVersion", "hiprtcCompileProgram"):
            assert not hasattr(runtime, name) and hasattr(ctypes.CDLL("libhiprtc.so.7"), name)
        cupy.arange(3) + 1
        assert h.calls("hiprtcCompileProgram") > 0  # counted in the one table all the same
        """,
        environ={"CUPY_CACHE_IN_MEMORY": "1"},
    )


@needs_emulator
@pytest.mark.parametrize("version", rocm.VERSIONS.values(), ids=str)
def test_every_symbol_of_the_wheel_s_runtime_is_there_at_its_version(version: rocm.Rocm) -> None:
    """In the environment of each wheel: what its modules ask of the runtime, with the symbol versions they name."""
    if version.number != ROCM:
        pytest.skip("the other wheel is installed")
    program = "import cupy, cupyx, cupy.cuda.cub, cupy.cuda.thrust, cupy.cuda.texture, cupyx.cusolver, cupy.cuda.nccl"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment(quiet=True), "LD_BIND_NOW": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs_rocm7
@needs_emulator
def test_warp_functions_take_a_mask_in_rocm_7(emulated: Run) -> None:
    emulated(
        """
        code = '''extern "C" __global__ void k(const int* x, int* out, unsigned long long* votes) {
          const unsigned long long all = ~0ull;
          const int i = threadIdx.x, mine = x[i];
          out[i] = __shfl_sync(all, mine, 3);
          out[64 + i] = __shfl_up_sync(all, mine, 1);
          out[128 + i] = __shfl_down_sync(all, mine, 2);
          out[192 + i] = __shfl_xor_sync(all, mine, 1);
          votes[0] = __ballot_sync(all, mine % 3 == 0);
          votes[1] = __any_sync(all, mine == 5) + 10 * __all_sync(all, mine < 64) + 100 * __all_sync(all, mine < 63);
        }'''
        x = cupy.arange(64, dtype="i4")
        out, votes = cupy.zeros(256, "i4"), cupy.zeros(2, "u8")
        cupy.RawKernel(code, "k")((1,), (64,), (x, out, votes))
        a = np.arange(64)
        wanted = [np.full(64, 3), np.maximum(a - 1, 0), np.where(a < 62, a + 2, a), a ^ 1]
        assert (out.get().reshape(4, 64) == wanted).all()
        assert votes.tolist() == [sum(1 << i for i in range(0, 64, 3)), 11]
        try:
            cupy.RawKernel(code.replace("long long all = ~0ull", "all = ~0u"), "k").compile()
        except cupy.cuda.compiler.CompileException as error:
            assert "64-bit" in str(error)
        else:
            raise AssertionError
        """
    )
