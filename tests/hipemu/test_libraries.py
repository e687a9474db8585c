"""BLAS, random numbers, sorting; and that everything else refuses by name, never in silence."""

from __future__ import annotations

import pytest

from .conftest import Run, needs_emulator

pytestmark = needs_emulator


@pytest.mark.parametrize("blas", ["installed", "none"])
def test_matrix_products_equal_numpy(emulated: Run, blas: str) -> None:
    emulated(
        """
        rng = np.random.default_rng(0)
        a, b = rng.standard_normal((37, 53)), rng.standard_normal((53, 29))
        for dtype in "efdFD":
            x, y = a.astype(dtype), b.astype(dtype)
            if dtype in "FD":
                x, y = x + 1j * x[::-1], y * (1 + 0.5j)
            u, v = cupy.asarray(x), cupy.asarray(y)
            rtol = {"e": 3e-2, "f": 1e-3, "F": 1e-3}.get(dtype, 1e-10)
            for want, got in [(x @ y, u @ v), (y.T @ x.T, v.T @ u.T), (x @ x[0], u @ u[0]),
                              (np.matmul(x[None], y[None]), cupy.matmul(u[None], v[None])),
                              (np.vdot(x[0], x[1]), cupy.vdot(u[0], u[1])),
                              (np.outer(x[0], x[1]), cupy.outer(u[0], u[1])),
                              (np.tensordot(x, y, 1), cupy.tensordot(u, v, 1))]:
                np.testing.assert_allclose(got.get(), want, rtol=rtol, atol=rtol * 10)
        s = rng.standard_normal((5, 7, 9))
        np.testing.assert_allclose(cupy.matmul(cupy.asarray(s), cupy.asarray(s).transpose(0, 2, 1)).get(),
                                   s @ s.transpose(0, 2, 1), rtol=1e-10)
        """,
        environ={"HIPEMU_BLAS": ""} if blas == "none" else {},
    )


def test_random_numbers_have_their_moments_and_repeat(emulated: Run) -> None:
    emulated(
        """
        cupy.random.seed(3)
        u, n = cupy.random.rand(100000), cupy.random.randn(100000)
        assert abs(float(u.mean()) - 0.5) < 0.01 and abs(float(u.std()) - 12**-0.5) < 0.01
        assert abs(float(n.mean())) < 0.02 and abs(float(n.std()) - 1) < 0.02
        i = cupy.random.randint(0, 10, 1000).get()
        assert i.min() == 0 and i.max() == 9
        cupy.random.seed(3)
        assert (cupy.random.rand(100000) == u).all()
        g = cupy.random.Generator(cupy.random.XORWOW(1, size=1000))
        x, y = g.random(100000), g.standard_normal(100000)
        assert abs(float(x.mean()) - 0.5) < 0.01 and abs(float(y.std()) - 1) < 0.02
        assert abs(float(g.poisson(4.0, size=10000).mean()) - 4) < 0.2
        again = cupy.random.Generator(cupy.random.XORWOW(1, size=1000))
        assert (again.random(100000) == x).all()
        """
    )


def test_sorting_is_stable_and_puts_nan_last(emulated: Run) -> None:
    emulated(
        """
        rng = np.random.default_rng(0)
        a = rng.standard_normal((6, 50))
        a[2, [3, 7]] = np.nan
        for dtype in "efd":
            x = a.astype(dtype)
            assert np.array_equal(cupy.sort(cupy.asarray(x)).get(), np.sort(x), equal_nan=True)
        assert (cupy.argsort(cupy.asarray(a)).get() == np.argsort(a, kind="stable")).all()
        k = rng.integers(0, 3, 200)
        assert (cupy.argsort(cupy.asarray(k)).get() == np.argsort(k, kind="stable")).all()
        assert (cupy.unique(cupy.asarray(k)).get() == np.unique(k)).all()
        keys = rng.integers(0, 4, (3, 100))
        assert (cupy.lexsort(cupy.asarray(keys)).get() == np.lexsort(keys)).all()
        z = (a[:2] + 1j * a[1:3]).round()
        assert np.array_equal(cupy.sort(cupy.asarray(z)).get(), np.sort(z), equal_nan=True)
        """
    )


def test_a_library_function_that_is_not_there_says_its_name(emulated: Run) -> None:
    done = emulated(
        """
        import cupyx.scipy.sparse as sparse
        try:
            sparse.csr_matrix(cupy.eye(3)) @ cupy.ones(3)
        except Exception as error:
            print(type(error).__name__)
        else:
            raise AssertionError
        """
    )
    assert "hipemu: hipsparse" in done.stderr and "is not emulated" in done.stderr


def test_reductions_and_scans_of_cub_equal_numpy(emulated: Run) -> None:
    emulated(
        """
        from cupy.cuda import cub
        rng = np.random.default_rng(0)
        for dtype in "bBhHiIqQefdFD":
            a = np.trunc(rng.standard_normal((7, 33)) * 3)
            a = (abs(a) if dtype in "BHIQ" else a + 1j * a[::-1] if dtype in "FD" else a).astype(dtype)
            poisoned = [np.where(np.arange(33) == 5, np.nan, a).astype(dtype)] if dtype in "efdFD" else []
            for a in [a, *poisoned]:
                x = cupy.asarray(a)
                near = dict(rtol=1e-2 if dtype == "e" else 1e-5, equal_nan=True)
                for f, number in dict(sum=cub.CUPY_CUB_SUM, prod=cub.CUPY_CUB_PROD,
                                      min=cub.CUPY_CUB_MIN, max=cub.CUPY_CUB_MAX).items():
                    kind = dict(dtype=dtype) if f in ("sum", "prod") else {}
                    with np.errstate(all="ignore"):
                        want, rows = getattr(a[:2], f)(**kind), getattr(a, f)(axis=1, **kind)
                    assert np.allclose(cub.device_reduce(x[:2], number, (0, 1), ()).get(), want, **near), (dtype, f)
                    got = cub.device_segmented_reduce(x, number, (1,), (0,), contiguous_size=33)
                    assert np.allclose(got.get(), rows, **near), (dtype, f)
                for f, number in dict(argmin=cub.CUPY_CUB_ARGMIN, argmax=cub.CUPY_CUB_ARGMAX).items():
                    assert int(cub.device_reduce(x, number, (0, 1), ())) == getattr(a, f)()
                got = cub.device_scan(x.ravel().copy(), cub.CUPY_CUB_CUMSUM).get()
                assert np.allclose(got, np.cumsum(a, dtype=dtype), **near)
        for a in (rng.standard_normal(500), rng.integers(-9, 9, 500)):
            edges = np.linspace(-4, 4, 9)
            got = cub.device_histogram(cupy.asarray(a), cupy.zeros(8, "i8"), cupy.asarray(edges)).get()
            inside = a[a < 4]
            assert (got == np.histogram(inside, edges)[0]).all()
        """
    )


def test_a_precompiled_kernel_is_an_error_that_stays_and_names_it(emulated: Run) -> None:
    """The wheel's C++ launches such kernels and does not look at the result; so all that follows fails."""
    emulated(
        """
        x = cupy.arange(10.0)
        library = h.control.library()
        pointer = ctypes.c_void_p(12345)
        library.__hipRegisterFunction(None, pointer, None, b"_Z5sievePi", 0, None, None, None, None, None)
        dims = ctypes.c_uint64(1), ctypes.c_uint32(1)
        assert library.hipLaunchKernel(pointer, *dims, *dims, None, ctypes.c_size_t(0), None) == 801
        for later in (x.get, lambda: x + 1, rt.deviceSynchronize, lambda: cupy.zeros(100_000)):
            try:
                later()
            except rt.CUDARuntimeError as error:
                assert error.status == 801 and "precompiled device code" in str(error) and "sieve(int*)" in str(error)
            else:
                raise AssertionError
        """
    )


@pytest.mark.parametrize(
    "call",
    [
        "rt.ipcGetMemHandle(rt.malloc(10))",
        "rt.ipcOpenMemHandle(bytes(64), 0)",
        "rt.graphLaunch(1, s.ptr)",
        "rt.graphInstantiate(1)",
    ],
)
def test_what_the_runtime_does_not_have_is_refused(emulated: Run, call: str) -> None:
    emulated(
        f"""
        s = cupy.cuda.Stream()
        try:
            {call}
        except rt.CUDARuntimeError as error:
            assert error.status == 801 and "is not emulated" in str(error), str(error)
        else:
            raise AssertionError
        assert cupy.ones(3).sum() == 3
        """
    )


def test_capture_is_refused_by_name(emulated: Run) -> None:
    emulated(
        """
        s = cupy.cuda.Stream()
        library = h.control.library()
        library.hipGetErrorString.restype = ctypes.c_char_p
        out = ctypes.c_void_p()
        for call in (lambda: library.hipStreamBeginCapture(ctypes.c_void_p(s.ptr), 0),
                     lambda: library.hipStreamEndCapture(ctypes.c_void_p(s.ptr), ctypes.byref(out))):
            assert call() == 801
            assert b"Capture is not emulated" in library.hipGetErrorString(801)
        try:
            with s:
                s.begin_capture()
        except RuntimeError as error:  # CuPy 13 refuses it itself
            assert "not supported" in str(error) or "not emulated" in str(error)
        else:
            raise AssertionError
        """
    )


def test_collectives_are_refused_by_name(emulated: Run) -> None:
    done = emulated(
        """
        from cupy.cuda import nccl
        try:
            nccl.NcclCommunicator(1, nccl.get_unique_id(), 0)
        except nccl.NcclError as error:
            assert "not emulated" in str(error), str(error)
        else:
            raise AssertionError
        """
    )
    assert "hipemu: ncclGetUniqueId is not emulated" in done.stderr


def test_linear_algebra_equals_numpy(emulated: Run) -> None:
    pytest.importorskip("scipy_openblas32")
    emulated(
        """
        rng = np.random.default_rng(0)
        for dtype in "fdFD":
            a = rng.standard_normal((12, 12)).astype(dtype)
            if dtype in "FD":
                a = a + 1j * rng.standard_normal((12, 12)).astype(dtype)
            s = a @ a.conj().T + 3 * np.eye(12, dtype=dtype)
            x, p = cupy.asarray(a), cupy.asarray(s)
            near = dict(rtol=1e-2, atol=1e-3) if dtype in "fF" else dict(rtol=1e-8, atol=1e-9)
            def check(got, want):
                np.testing.assert_allclose(cupy.asnumpy(got), want, **near)
            check(cupy.linalg.inv(x) @ x, np.eye(12))
            check(cupy.linalg.solve(x, x[:, :3]), np.eye(12)[:, :3])
            check(cupy.linalg.slogdet(x)[1], np.linalg.slogdet(a)[1])
            check(cupy.linalg.cholesky(p), np.linalg.cholesky(s))
            check(cupy.linalg.eigvalsh(p), np.linalg.eigvalsh(s))
            w, v = cupy.linalg.eigh(p)
            check(v * w @ v.conj().T, s)
            q, r = cupy.linalg.qr(x)
            check(q @ r, a)
            check(q.conj().T @ q, np.eye(12))
            u, d, vt = cupy.linalg.svd(x[:, :7], full_matrices=False)
            check(u * d @ vt, a[:, :7])
            check(cupy.linalg.lstsq(x, x[:, 0])[0], np.eye(12)[0])
        """
    )


def test_the_report_is_printed_at_the_end(emulated: Run) -> None:
    done = emulated(
        """
        x = managed(16 * PAGE)
        host(x)[:] = 1
        write(x)
        """,
        report=True,
    )
    assert "device 0" in done.stderr and "hipMallocManaged 1" in done.stderr
    assert [line.split()[-2:] for line in done.stderr.splitlines() if "from the host" in line] == [["16", "pages"]]


def test_fourier_transforms_equal_numpy(emulated: Run) -> None:
    emulated(
        """
        rng = np.random.default_rng(0)
        for n in (1, 2, 16, 37, 60, 1009, 4096):
            a = rng.standard_normal((3, n)) + 1j * rng.standard_normal((3, n))
            x = cupy.asarray(a)
            for axis in (0, 1):
                np.testing.assert_allclose(cupy.fft.fft(x, axis=axis).get(), np.fft.fft(a, axis=axis), atol=1e-9)
                np.testing.assert_allclose(cupy.fft.ifft(x, axis=axis).get(), np.fft.ifft(a, axis=axis), atol=1e-9)
            r = cupy.fft.rfft(x.real)
            np.testing.assert_allclose(r.get(), np.fft.rfft(a.real), atol=1e-9)
            np.testing.assert_allclose(cupy.fft.irfft(r, n).get(), a.real, atol=1e-9)
            f = cupy.fft.fft(x.astype("F"))
            assert f.dtype == np.complex64
            np.testing.assert_allclose(f.get(), np.fft.fft(a), atol=2e-4 * n**0.5)
        b = rng.standard_normal((4, 6, 10))
        y = cupy.asarray(b)
        np.testing.assert_allclose(cupy.fft.fftn(y).get(), np.fft.fftn(b), atol=1e-9)
        np.testing.assert_allclose(cupy.fft.fft2(y).get(), np.fft.fft2(b), atol=1e-9)
        np.testing.assert_allclose(cupy.fft.rfftn(y).get(), np.fft.rfftn(b), atol=1e-9)
        np.testing.assert_allclose(cupy.fft.irfftn(cupy.fft.rfftn(y)).get(), b, atol=1e-9)
        """
    )
