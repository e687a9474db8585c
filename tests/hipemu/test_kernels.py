"""Kernels: what CuPy compiles runs, and gives NumPy's numbers; what goes wrong in one is an error that stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run, needs_emulator

pytestmark = needs_emulator


def test_arithmetic_reductions_and_indexing_equal_numpy(emulated: Run) -> None:
    emulated(
        """
        rng = np.random.default_rng(0)
        a = rng.standard_normal((37, 53))
        i = np.array([3, 1, 30])
        def setitem(xp, x):
            x = x.copy()
            x[[1, 2, 5]] = 7
            x[:, 3] = xp.arange(37)
            x[x < -1] = 0
            return x
        tests = [
            lambda xp, x: xp.sin(x) + x * 3 - x / (x * x + 1),
            lambda xp, x: x.sum(axis=0), lambda xp, x: x.mean(axis=1), lambda xp, x: x.std(),
            lambda xp, x: x.argmax(axis=1), lambda xp, x: x.prod(axis=1), lambda xp, x: (x > 0).all(axis=0),
            lambda xp, x: xp.cumsum(x, axis=1), lambda xp, x: xp.where(x > 0, x, -x), lambda xp, x: x[x > 0],
            lambda xp, x: x[xp.asarray(i)], lambda xp, x: xp.take(x, xp.asarray(i), axis=1), setitem,
            lambda xp, x: xp.concatenate([x[: n + 1] for n in range(30)]), lambda xp, x: xp.stack([x, x], axis=2),
            lambda xp, x: x.T.copy(), lambda xp, x: xp.pad(x, 2), lambda xp, x: x.astype("i8") % 3,
            lambda xp, x: xp.bincount(abs(x.astype("i8")).ravel()), lambda xp, x: (x * 7).astype("i4") // 3,
        ]
        for n, f in enumerate(tests):
            for dtype in "edf":
                want, got = f(np, a.astype(dtype)), f(cupy, cupy.asarray(a.astype(dtype))).get()
                assert want.dtype == got.dtype or n == 4, (n, dtype, want.dtype, got.dtype)
                tolerance = {"e": 0.1, "f": 1e-4, "d": 1e-12}[dtype]
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 8, err_msg=f"{n} {dtype}")
        z = a + 1j * a[::-1]
        np.testing.assert_allclose(cupy.exp(cupy.asarray(z)).get(), np.exp(z), rtol=1e-12)
        """
    )


def test_float16_conversions_round_as_numpy_does(emulated: Run) -> None:
    emulated(
        """
        bits = np.arange(65536, dtype="u2").view("e")
        assert np.array_equal(cupy.asarray(bits).astype("f4").get(), bits.astype("f4"), equal_nan=True)
        rng = np.random.default_rng(0)
        x = np.concatenate([rng.standard_normal(100000) * 10.0 ** rng.integers(-9, 6, 100000),
                            bits[np.isfinite(bits)].astype("f8") * (1 + 2.0**-11),
                            [65504, 65519.99, 65520, 2**-25, 2**-24, 0, -0.0, np.inf, np.nan, 1 + 2**-11 + 2**-40]])
        with np.errstate(all="ignore"):
            x = x.astype("f")  # CuPy's own conversion from double goes through float
            assert np.array_equal(cupy.asarray(x).astype("e").get(), x.astype("e"), equal_nan=True)
        """
    )


def test_bessel_functions_end_in_infinity(emulated: Run) -> None:
    emulated(
        """
        x = np.array([0, 1e-9, 1, -3, 29.9, 30.1, 300, 700, 800, -np.inf, np.nan])
        got = cupy.i0(cupy.asarray(x)).get()
        np.testing.assert_allclose(got[:8], np.i0(x[:8]), rtol=1e-14)
        assert (got[8:10] == np.inf).all() and np.isnan(got[10])
        assert cupy.i0(cupy.asarray([1 << 62, -5])).get()[0] == np.inf
        """
    )


def test_barriers_and_static_and_dynamic_shared_memory(emulated: Run) -> None:
    emulated(
        r"""
        k = cupy.RawKernel(r'''
        extern "C" __global__ void k(const float* x, float* y) {
          extern __shared__ float dynamic[];
          __shared__ float fixed[128];
          int t = threadIdx.x;
          dynamic[t] = x[blockIdx.x * blockDim.x + t];
          __syncthreads();
          fixed[t] = dynamic[blockDim.x - 1 - t];
          for (int half = blockDim.x / 2; half > 0; half /= 2) {
            __syncthreads();
            if (t < half) fixed[t] += fixed[t + half];
          }
          __syncthreads();
          y[blockIdx.x * blockDim.x + t] = fixed[0] + dynamic[blockDim.x - 1 - t];
        }''', "k")
        x = cupy.arange(512, dtype="f4")
        y = cupy.empty_like(x)
        k((4,), (128,), (x, y), shared_mem=512)
        blocks = np.arange(512, dtype="f4").reshape(4, 128)
        assert (y.get().reshape(4, 128) == blocks.sum(1, keepdims=True) + blocks[:, ::-1]).all()
        count = cupy.RawKernel('extern "C" __global__ void k(int* o) { o[threadIdx.x] = __syncthreads_count('
                               'threadIdx.x % 3 == 0) * 100 + __syncthreads_or(threadIdx.x == 99) * 10 + '
                               '__syncthreads_and(threadIdx.x < 99); }', "k")
        o = cupy.zeros(100, "i4")
        count((1,), (100,), (o,))
        assert (o.get() == 3410).all()
        """
    )


def test_warp_operations(emulated: Run) -> None:
    emulated(
        r"""
        k = cupy.RawKernel(r'''
        extern "C" __global__ void k(long long* o) {
          int t = threadIdx.x, v = t;
          for (int d = 32; d > 0; d >>= 1) v += __shfl_xor(v, d);
          double up = __shfl_up((double)t, 1u), down = __shfl_down(t, 1), first = __shfl(t, 0, 16);
          unsigned long long votes = __ballot(t % 2), some = 0;
          if (t % 64 < 10) some = __ballot(1);  // only the active lanes take part
          o[t * 7] = v; o[t * 7 + 1] = up; o[t * 7 + 2] = down; o[t * 7 + 3] = first;
          o[t * 7 + 4] = __popcll(votes); o[t * 7 + 5] = some; o[t * 7 + 6] = __any(t == 5) * 2 + __all(t < 64);
        }''', "k")
        o = cupy.zeros((128, 7), "i8")
        k((1,), (128,), (o,))
        o, t = o.get(), np.arange(128)
        assert (o[:, 0] == np.where(t < 64, 2016, 2016 + 64 * 64)).all()
        assert (o[:, 1] == np.where(t % 64 == 0, t, t - 1)).all()
        assert (o[:, 2] == np.where(t % 64 == 63, t, t + 1)).all() and (o[:, 3] == t // 16 * 16).all()
        assert (o[:, 4] == 32).all() and (o[:, 5] == np.where(t % 64 < 10, 1023, 0)).all()
        assert (o[:, 6] == np.where(t < 64, 3, 0)).all()
        """
    )


def test_atomics_over_streams(emulated: Run) -> None:
    emulated(
        """
        k = cupy.RawKernel('extern "C" __global__ void k(int* i, double* d, unsigned long long* m) {'
                           'atomicAdd(i, 1); atomicAdd(d, 0.5); atomicMax(m, (unsigned long long)threadIdx.x); }', "k")
        i, d, m = cupy.zeros(1, "i4"), cupy.zeros(1), cupy.zeros(1, "u8")
        rt.deviceSynchronize()
        for s in [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]:
            with s:
                k((100,), (256,), (i, d, m))
        rt.deviceSynchronize()
        assert (int(i[0]), float(d[0]), int(m[0])) == (51200, 25600.0, 255)
        x = cupy.zeros(5)
        import cupyx
        cupyx.scatter_add(x, cupy.array([1, 1, 2]), 1.0)
        assert x.get().tolist() == [0, 2, 1, 0, 0]
        """
    )


def test_user_kernels_of_every_kind(emulated: Run) -> None:
    done = emulated(
        r"""
        l2 = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2")
        assert abs(float(l2(cupy.arange(5.0))) - 30**0.5) < 1e-12
        e = cupy.ElementwiseKernel("T x, raw T w", "T y", "if (x < 0) continue; y = x + w[i % 2]", "e")
        assert e(cupy.arange(4.0), cupy.array([10.0, 20.0])).get().tolist() == [10, 21, 12, 23]
        n = cupy.ElementwiseKernel("T x", "T y", "y = x; atomicAdd(&y, T(1))", "n", after_loop="// nothing")
        assert n(cupy.arange(3.0)).get().tolist() == [1, 2, 3]
        @cupy.fuse()
        def fused(x, y):
            return cupy.sqrt(x * x + y * y)
        assert fused(cupy.array([3.0]), cupy.array([4.0])).get() == [5.0]
        m = cupy.RawModule(code=r'''
            namespace deep { __device__ int twice(int x) { return 2 * x; } }
            template <class T> __global__ void fill(T* x, T v) { x[threadIdx.x] = v * deep::twice(threadIdx.x); }
            __constant__ float c[4];
            __global__ void plain(float* o) { o[threadIdx.x] = c[threadIdx.x]; }
            ''', options=("-std=c++14",), name_expressions=["fill<double>", "fill<int>", "plain"])
        z, w, o = cupy.zeros(4), cupy.zeros(4, "i4"), cupy.zeros(4, "f4")
        m.get_function("fill<double>")((1,), (4,), (z, np.float64(2.5)))
        m.get_function("fill<int>")((1,), (4,), (w, np.int32(3)))
        c = cupy.ndarray((4,), "f4", m.get_global("c"))
        c[...] = cupy.arange(4, dtype="f4")
        m.get_function("plain")((1,), (4,), (o,))
        assert (z.get().tolist(), w.get().tolist(), o.get().tolist()) == ([0, 5, 10, 15], [0, 6, 12, 18], [0, 1, 2, 3])
        p = cupy.RawKernel('extern "C" __global__ void p() { printf("from thread %d\\n", threadIdx.x); }', "p")
        p((1,), (2,), ())
        rt.deviceSynchronize()
        """
    )
    assert done.stdout.endswith("from thread 0\nfrom thread 1\n")


def test_an_after_loop_runs_once_a_thread(emulated: Run) -> None:
    emulated(
        """
        e = cupy.ElementwiseKernel("T x", "T y, raw int32 n", "y = x", "e", after_loop="atomicAdd(&n[0], 1)")
        n = cupy.zeros(1, "i4")
        e(cupy.zeros(1000), cupy.zeros(1000), n, block_size=128)
        assert int(n[0]) == 1024
        """
    )


def test_a_compile_error_is_cupys_own_exception(emulated: Run) -> None:
    emulated(
        """
        from cupy.cuda.compiler import CompileException
        try:
            cupy.RawKernel('extern "C" __global__ void k() { nonsense; }', "k").compile()
        except CompileException as error:
            assert "nonsense" in str(error)
        else:
            raise AssertionError
        assert int(cupy.ones(3).sum()) == 3
        """
    )


WRONG = {
    "illegal address": ("((float*)16)[0] = 1;", "illegal memory access", "touched 0x10"),
    "past the end": ("x[1 << 26] = 1;", "illegal memory access", "touched"),
    "assertion": ("assert(x == nullptr);", "device-side assert", "x == nullptr"),
    "division": ("volatile int zero = 0; x[0] = 7 / zero;", "unspecified launch failure", "Floating point"),
    "stack": ("volatile char big[1 << 20]; big[5] = 1; x[0] = big[5];", "illegal memory access", "touched"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_goes_wrong_in_a_kernel_stays(emulated: Run, what: str) -> None:
    body, error, detail = WRONG[what]
    emulated(
        f"""
        body = {body!r}
        k = cupy.RawKernel('#include <cassert>\\nextern "C" __global__ void bad(float* x) {{' + body + "}}", "bad")
        x = cupy.zeros(10, "f4")
        def fails(call):
            try:
                call()
            except Exception as error:
                return str(error)
            raise AssertionError("no error")
        fails(lambda: (k((1,), (1,), (x,)), rt.deviceSynchronize()))
        for _ in range(2):
            text = fails(rt.deviceSynchronize)
            assert all(part in text for part in ({error!r}, {detail!r}, "kernel bad")), text
        fails(x.get)
        h.clear_error()
        assert x.get().shape == (10,)
        """
    )


def test_another_devices_memory_needs_peer_access(emulated: Run) -> None:
    emulated(
        """
        from cupy_backends.cuda.api.driver import CUDADriverError

        x = cupy.zeros(10, "f4")
        rt.deviceSynchronize()
        with cupy.cuda.Device(1):
            y = managed(40, 1, pointer=x.data.ptr)
            rt.deviceEnablePeerAccess(0)
            write(y)
            rt.deviceDisablePeerAccess(0)
            try:
                write(y)
            except (rt.CUDARuntimeError, CUDADriverError) as error:  # told by the next synchronise, or by the launch
                assert error.status == 700
            else:
                raise AssertionError
        """,
        devices=2,
    )


def test_a_block_that_is_too_big_is_refused(emulated: Run) -> None:
    emulated(
        """
        k = cupy.RawKernel('extern "C" __global__ void k() {}', "k")
        from cupy_backends.cuda.api.driver import CUDADriverError
        for grid, block in [((1,), (1025,)), ((1,), (32, 33))]:
            try:
                k(grid, block, ())
            except CUDADriverError as error:
                assert "invalid configuration" in str(error)
            else:
                raise AssertionError
        """
    )


def test_jit_kernels(emulated: Run, tmp_path: Path) -> None:
    # From a file: CuPy reads the source of a function that it compiles.
    program = tmp_path / "jit.py"
    program.write_text(
        """
import cupy
from cupyx import jit

@jit.rawkernel()
def twice(x, y, n):
    i = jit.grid(1)
    step = jit.gridsize(1)
    for j in range(i, n, step):
        a, b = x[j], x[j]
        y[j] = a + b

@jit.rawkernel()
def backwards(x, y):
    shared = jit.shared_memory(cupy.float32, 64)
    t = jit.threadIdx.x
    shared[t] = x[t]
    jit.syncthreads()
    y[t] = shared[63 - t]

x = cupy.arange(64, dtype="f4")
y = cupy.zeros_like(x)
twice[2, 16](x, y, 64)
assert (y == 2 * x).all()
backwards[1, 64](x, y)
assert (y == x[::-1]).all()
"""
    )
    emulated(f"exec(compile(open({str(program)!r}).read(), {str(program)!r}, 'exec'))")
