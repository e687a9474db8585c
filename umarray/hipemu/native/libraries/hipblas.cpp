// hipBLAS: the part that CuPy calls often. The rest of the library is refused by name (umarray/hipemu/stubs.py).
//
// Matrix products go to OpenBLAS where it is installed, else to plain loops. Scalars follow the handle's pointer mode:
// host scalars are read by the call, device scalars when the stream gets there; a host result is waited for.
#include <cmath>
#include <complex>
#include <cstdio>
#include <memory>
#include <vector>

#include "../abi.h"
#include "blas_kernels.h"
#include "openblas.h"
#include "work.h"

using namespace hipemu;
using c64 = std::complex<float>;
using c128 = std::complex<double>;

namespace {

enum Status : int { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 3, EXECUTION_FAILED = 6, NOT_SUPPORTED = 7 };

struct Handle {
  void* stream = nullptr;
  int pointer_mode = 0;  // 0 host, 1 device
};

Status refuse(const char* what) {
  std::fprintf(stderr, "hipemu: %s is not emulated\n", what);
  return NOT_SUPPORTED;
}

// A scalar argument: known now, or to be read on the stream.
template <class V>
struct Scalar {
  V value{};
  const V* later = nullptr;
  V get() const { return later ? *later : value; }
};

template <class V>
Scalar<V> scalar(const Handle& h, const V* p) {
  Scalar<V> s;
  if (h.pointer_mode) {
    s.later = shift(p, h.stream);
  } else {
    s.value = *p;
  }
  return s;
}

Status status(int code) { return code ? EXECUTION_FAILED : OK; }

constexpr int COLUMN_MAJOR = 102;

template <class V>
void gemm(int ta, int tb, int m, int n, int k, V alpha, const V* a, int lda, const V* b, int ldb, V beta, V* c,
          int ldc) {
  if (m <= 0 || n <= 0) return;
  if constexpr (std::is_floating_point_v<V>) {
    using F = void(int, int, int, int, int, int, V, const V*, int, const V*, int, V, V*, int);
    static F* const f = openblas::find<F>(std::is_same_v<V, float> ? "cblas_sgemm" : "cblas_dgemm");
    if (f) return f(COLUMN_MAJOR, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  } else {
    using P = const void*;
    using F = void(int, int, int, int, int, int, P, P, int, P, int, P, void*, int);
    static F* const f = openblas::find<F>(std::is_same_v<V, c64> ? "cblas_cgemm" : "cblas_zgemm");
    if (f) return f(COLUMN_MAJOR, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
  }
  blas::gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <class V>
Status queue_gemm(void* handle, int ta, int tb, int m, int n, int k, const V* alpha, const V* a, int lda,
                  long long stride_a, const V* b, int ldb, long long stride_b, const V* beta, V* c, int ldc,
                  long long stride_c, int batch) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto x = scalar(h, alpha), y = scalar(h, beta);
  a = shift(a, h.stream), b = shift(b, h.stream), c = shift(c, h.stream);
  return status(enqueue(h.stream, "hipblas gemm", [=] {
    for (int i = 0; i < batch; ++i) {
      gemm<V>(ta, tb, m, n, k, x.get(), a + i * stride_a, lda, b + i * stride_b, ldb, y.get(), c + i * stride_c, ldc);
    }
  }));
}

template <class V>
Status queue_gemm_batched(void* handle, int ta, int tb, int m, int n, int k, const V* alpha, const V* const* a, int lda,
                          const V* const* b, int ldb, const V* beta, V* const* c, int ldc, int batch) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto x = scalar(h, alpha), y = scalar(h, beta);
  a = shift(a, h.stream), b = shift(b, h.stream), c = shift(c, h.stream);
  return status(enqueue(h.stream, "hipblas gemmBatched", [=] {
    for (int i = 0; i < batch; ++i) {
      gemm<V>(ta, tb, m, n, k, x.get(), shift_here(a[i]), lda, shift_here(b[i]), ldb, y.get(), shift_here(c[i]), ldc);
    }
  }));
}

template <class V>
Status queue_gemv(void* handle, int op, int m, int n, const V* alpha, const V* a, int lda, const V* x, int incx,
                  const V* beta, V* y, int incy) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto p = scalar(h, alpha), q = scalar(h, beta);
  a = shift(a, h.stream), x = shift(x, h.stream), y = shift(y, h.stream);
  return status(enqueue(h.stream, "hipblas gemv", [=] {
    const int rows = op == blas::N ? m : n, columns = op == blas::N ? n : m;
    const V* from = incx < 0 ? x - static_cast<ptrdiff_t>(columns - 1) * incx : x;
    V* to = incy < 0 ? y - static_cast<ptrdiff_t>(rows - 1) * incy : y;
    for (int i = 0; i < rows; ++i) {
      V sum{};
      for (int j = 0; j < columns; ++j) sum += blas::element(a, lda, op, i, j) * from[static_cast<ptrdiff_t>(j) * incx];
      V& out = to[static_cast<ptrdiff_t>(i) * incy];
      out = q.get() == V{} ? p.get() * sum : p.get() * sum + q.get() * out;
    }
  }));
}

template <class V>
Status queue_ger(void* handle, int m, int n, const V* alpha, const V* x, int incx, const V* y, int incy, V* a, int lda,
                 bool conjugated) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto p = scalar(h, alpha);
  a = shift(a, h.stream), x = shift(x, h.stream), y = shift(y, h.stream);
  if (incx < 0 || incy < 0) return refuse("hipblas ger with a negative step");
  return status(enqueue(h.stream, "hipblas ger", [=] {
    for (ptrdiff_t j = 0; j < n; ++j) {
      const V right = conjugated ? blas::conjugate(y[j * incy]) : y[j * incy];
      for (ptrdiff_t i = 0; i < m; ++i) a[i + j * lda] += p.get() * x[i * incx] * right;
    }
  }));
}

template <class V>
Status queue_geam(void* handle, int ta, int tb, int m, int n, const V* alpha, const V* a, int lda, const V* beta,
                  const V* b, int ldb, V* c, int ldc) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto p = scalar(h, alpha), q = scalar(h, beta);
  a = shift(a, h.stream), b = shift(b, h.stream), c = shift(c, h.stream);
  return status(enqueue(h.stream, "hipblas geam", [=] {
    const V x = p.get(), y = q.get();
    for (ptrdiff_t j = 0; j < n; ++j) {
      for (ptrdiff_t i = 0; i < m; ++i) {
        const V left = x == V{} ? V{} : x * blas::element(a, lda, ta, i, j);
        const V right = y == V{} ? V{} : y * blas::element(b, ldb, tb, i, j);
        c[i + j * ldc] = left + right;
      }
    }
  }));
}

template <class V>
Status queue_dgmm(void* handle, int side, int m, int n, const V* a, int lda, const V* x, int incx, V* c, int ldc) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  a = shift(a, h.stream), x = shift(x, h.stream), c = shift(c, h.stream);
  const ptrdiff_t length = side == 141 ? m : n;
  return status(enqueue(h.stream, "hipblas dgmm", [=] {
    const V* start = incx < 0 ? x - (length - 1) * incx : x;
    for (ptrdiff_t j = 0; j < n; ++j) {
      for (ptrdiff_t i = 0; i < m; ++i) c[i + j * ldc] = a[i + j * lda] * start[(side == 141 ? i : j) * incx];
    }
  }));
}

// Vector work: `reduce` makes one value out of n elements (or two vectors), where the pointer mode says.
template <class R, class F>
Status queue_result(void* handle, R* result, F reduce) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  R* to = h.pointer_mode ? shift(result, h.stream) : result;
  return status(enqueue(h.stream, "hipblas reduction", [=] { *to = reduce(); }, h.pointer_mode == 0));
}

template <class V>
Status queue_dot(void* handle, int n, const V* x, int incx, const V* y, int incy, V* result, bool conjugated) {
  if (!handle) return NOT_INITIALIZED;
  void* stream = static_cast<Handle*>(handle)->stream;
  x = shift(x, stream), y = shift(y, stream);
  if (incx < 0) x -= static_cast<ptrdiff_t>(n - 1) * incx;
  if (incy < 0) y -= static_cast<ptrdiff_t>(n - 1) * incy;
  return queue_result(handle, result, [=] {
    V sum{};
    for (ptrdiff_t i = 0; i < n; ++i) sum += (conjugated ? blas::conjugate(x[i * incx]) : x[i * incx]) * y[i * incy];
    return sum;
  });
}

template <class R, class V>
R size1(const V& v) {
  if constexpr (blas::is_complex<V>::value) {
    return std::abs(v.real()) + std::abs(v.imag());
  } else {
    return std::abs(v);
  }
}

template <class R, class V>
Status queue_asum(void* handle, int n, const V* x, int incx, R* result) {
  if (!handle) return NOT_INITIALIZED;
  x = shift(x, static_cast<Handle*>(handle)->stream);
  return queue_result(handle, result, [=] {
    R sum{};
    for (ptrdiff_t i = 0; i < n; ++i) sum += size1<R>(x[i * incx]);
    return sum;
  });
}

template <class R, class V>
Status queue_nrm2(void* handle, int n, const V* x, int incx, R* result) {
  if (!handle) return NOT_INITIALIZED;
  x = shift(x, static_cast<Handle*>(handle)->stream);
  return queue_result(handle, result, [=] {
    double largest = 0, sum = 0;
    for (ptrdiff_t i = 0; i < n; ++i) largest = std::fmax(largest, std::abs(x[i * incx]));
    if (largest == 0) return R(0);
    for (ptrdiff_t i = 0; i < n; ++i) {
      const double part = std::abs(x[i * incx]) / largest;
      sum += part * part;
    }
    return static_cast<R>(largest * std::sqrt(sum));
  });
}

template <class R, class V>
Status queue_amax(void* handle, int n, const V* x, int incx, int* result, bool least) {
  if (!handle) return NOT_INITIALIZED;
  x = shift(x, static_cast<Handle*>(handle)->stream);
  return queue_result(handle, result, [=] {
    int best = 0;
    for (int i = 1; i < n; ++i) {
      const R here = size1<R>(x[static_cast<ptrdiff_t>(i) * incx]);
      const R there = size1<R>(x[static_cast<ptrdiff_t>(best) * incx]);
      if (least ? here < there : here > there) best = i;
    }
    return n > 0 ? best + 1 : 0;
  });
}

template <class S, class V>
Status queue_scal(void* handle, int n, const S* alpha, V* x, int incx) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto p = scalar(h, alpha);
  x = shift(x, h.stream);
  return status(enqueue(h.stream, "hipblas scal", [=] {
    for (ptrdiff_t i = 0; i < n; ++i) x[i * incx] *= p.get();
  }));
}

template <class V>
Status queue_axpy(void* handle, int n, const V* alpha, const V* x, int incx, V* y, int incy) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto p = scalar(h, alpha);
  x = shift(x, h.stream), y = shift(y, h.stream);
  if (incx < 0) x -= static_cast<ptrdiff_t>(n - 1) * incx;
  if (incy < 0) y -= static_cast<ptrdiff_t>(n - 1) * incy;
  return status(enqueue(h.stream, "hipblas axpy", [=] {
    for (ptrdiff_t i = 0; i < n; ++i) y[i * incy] += p.get() * x[i * incx];
  }));
}

// op(A) X = alpha B or X op(A) = alpha B, by substitution.
template <class V>
Status queue_trsm(void* handle, int side, int fill, int op, int diagonal, int m, int n, const V* alpha, const V* a,
                  int lda, V* b, int ldb) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto p = scalar(h, alpha);
  a = shift(a, h.stream), b = shift(b, h.stream);
  return status(enqueue(h.stream, "hipblas trsm", [=] {
    const bool left = side == 141, unit = diagonal == 132;
    const ptrdiff_t order = left ? m : n, others = left ? n : m;
    // Element (i, j) of the triangle that op makes of A; from the right, X A = B is A^T X^T = B^T.
    const auto at = [&](ptrdiff_t i, ptrdiff_t j) {
      return left ? blas::element(a, lda, op, i, j) : blas::element(a, lda, op, j, i);
    };
    const bool upper = (fill == 121) == ((op == blas::N) == left);
    for (ptrdiff_t r = 0; r < others; ++r) {
      const auto x = [&](ptrdiff_t i) -> V& { return left ? b[i + r * ldb] : b[r + i * ldb]; };
      for (ptrdiff_t s = 0; s < order; ++s) {
        const ptrdiff_t i = upper ? order - 1 - s : s;
        V sum = p.get() * x(i);
        for (ptrdiff_t t = 0; t < s; ++t) {
          const ptrdiff_t j = upper ? order - 1 - t : t;
          sum -= at(i, j) * x(j);
        }
        x(i) = unit ? sum : sum / at(i, i);
      }
    }
  }));
}

template <class V>
Status queue_syrk(void* handle, int fill, int op, int n, int k, const V* alpha, const V* a, int lda, const V* beta,
                  V* c, int ldc) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto p = scalar(h, alpha), q = scalar(h, beta);
  a = shift(a, h.stream), c = shift(c, h.stream);
  return status(enqueue(h.stream, "hipblas syrk", [=] {
    for (ptrdiff_t j = 0; j < n; ++j) {
      for (ptrdiff_t i = fill == 121 ? 0 : j; i < (fill == 121 ? j + 1 : n); ++i) {
        V sum{};
        for (ptrdiff_t l = 0; l < k; ++l) {
          sum += op == blas::N ? a[i + l * lda] * a[j + l * lda] : a[l + i * lda] * a[l + j * lda];
        }
        V& out = c[i + j * ldc];
        out = q.get() == V{} ? p.get() * sum : p.get() * sum + q.get() * out;
      }
    }
  }));
}

enum Type { R_16F = 150, R_32F = 151, R_64F = 152, C_32F = 154, C_64F = 155 };

Status gemm_ex(void* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int type_a, int lda,
               long long stride_a, const void* b, int type_b, int ldb, long long stride_b, const void* beta, void* c,
               int type_c, int ldc, long long stride_c, int batch, int compute) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto full = [&](auto one) {
    using V = decltype(one);
    return queue_gemm<V>(handle, ta, tb, m, n, k, static_cast<const V*>(alpha), static_cast<const V*>(a), lda, stride_a,
                         static_cast<const V*>(b), ldb, stride_b, static_cast<const V*>(beta), static_cast<V*>(c), ldc,
                         stride_c, batch);
  };
  if (type_a != type_b) return refuse("hipblasGemmEx with operands of two types");
  if (type_a == type_c && type_a == compute) {
    if (type_a == R_32F) return full(float{});
    if (type_a == R_64F) return full(double{});
    if (type_a == C_32F) return full(c64{});
    if (type_a == C_64F) return full(c128{});
  }
  if (type_a != R_16F || (type_c != R_16F && type_c != R_32F) || (compute != R_32F && compute != R_16F)) {
    return refuse("hipblasGemmEx with these types");
  }
  if (h.pointer_mode) return refuse("hipblasGemmEx of float16 with device scalars");
  const auto read = [&](const void* p) {
    return compute == R_32F ? *static_cast<const float*>(p) : hipemu_half_to_float(*static_cast<const uint16_t*>(p));
  };
  const float x = read(alpha), y = read(beta);
  const auto* left = static_cast<const uint16_t*>(shift(a, h.stream));
  const auto* right = static_cast<const uint16_t*>(shift(b, h.stream));
  void* out = shift(c, h.stream);
  return status(enqueue(h.stream, "hipblasGemmEx", [=] {
    const auto half = [](uint16_t v) { return hipemu_half_to_float(v); };
    for (int i = 0; i < batch; ++i) {
      const uint16_t *p = left + i * stride_a, *q = right + i * stride_b;
      if (type_c == R_16F) {
        blas::gemm_converted(ta, tb, m, n, k, x, p, lda, q, ldb, y, static_cast<uint16_t*>(out) + i * stride_c, ldc, half,
                             [](float v, float scale, uint16_t old) {
                               return hipemu_float_to_half(scale == 0 ? v : v + scale * hipemu_half_to_float(old));
                             });
      } else {
        blas::gemm_converted(ta, tb, m, n, k, x, p, lda, q, ldb, y, static_cast<float*>(out) + i * stride_c, ldc, half,
                             [](float v, float scale, float old) { return scale == 0 ? v : v + scale * old; });
      }
    }
  }));
}

}  // namespace

HIPEMU_EXPORT int hipblasCreate(void** handle) {
  *handle = new Handle;
  return OK;
}
HIPEMU_EXPORT int hipblasDestroy(void* handle) {
  delete static_cast<Handle*>(handle);
  return OK;
}
HIPEMU_EXPORT int hipblasSetStream(void* handle, void* stream) {
  if (!handle) return NOT_INITIALIZED;
  static_cast<Handle*>(handle)->stream = stream;
  return OK;
}
HIPEMU_EXPORT int hipblasGetStream(void* handle, void** stream) {
  if (!handle) return NOT_INITIALIZED;
  *stream = static_cast<Handle*>(handle)->stream;
  return OK;
}
HIPEMU_EXPORT int hipblasSetPointerMode(void* handle, int mode) {
  if (!handle) return NOT_INITIALIZED;
  static_cast<Handle*>(handle)->pointer_mode = mode;
  return OK;
}
HIPEMU_EXPORT int hipblasGetPointerMode(void* handle, int* mode) {
  if (!handle) return NOT_INITIALIZED;
  *mode = static_cast<Handle*>(handle)->pointer_mode;
  return OK;
}

#define FOR_TYPE(X, V)                                                                                                 \
  HIPEMU_EXPORT int hipblas##X##gemm(void* h, int ta, int tb, int m, int n, int k, const V* alpha, const V* a, int lda, \
                                     const V* b, int ldb, const V* beta, V* c, int ldc) {                              \
    return queue_gemm<V>(h, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);                         \
  }                                                                                                                    \
  HIPEMU_EXPORT int hipblas##X##gemmStridedBatched(void* h, int ta, int tb, int m, int n, int k, const V* alpha,       \
                                                   const V* a, int lda, long long sa, const V* b, int ldb,             \
                                                   long long sb, const V* beta, V* c, int ldc, long long sc,           \
                                                   int batch) {                                                        \
    return queue_gemm<V>(h, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batch);                  \
  }                                                                                                                    \
  HIPEMU_EXPORT int hipblas##X##gemmBatched(void* h, int ta, int tb, int m, int n, int k, const V* alpha,              \
                                            const V* const* a, int lda, const V* const* b, int ldb, const V* beta,     \
                                            V* const* c, int ldc, int batch) {                                         \
    return queue_gemm_batched<V>(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batch);                      \
  }                                                                                                                    \
  HIPEMU_EXPORT int hipblas##X##gemv(void* h, int op, int m, int n, const V* alpha, const V* a, int lda, const V* x,   \
                                     int incx, const V* beta, V* y, int incy) {                                        \
    return queue_gemv<V>(h, op, m, n, alpha, a, lda, x, incx, beta, y, incy);                                          \
  }                                                                                                                    \
  HIPEMU_EXPORT int hipblas##X##geam(void* h, int ta, int tb, int m, int n, const V* alpha, const V* a, int lda,       \
                                     const V* beta, const V* b, int ldb, V* c, int ldc) {                              \
    return queue_geam<V>(h, ta, tb, m, n, alpha, a, lda, beta, b, ldb, c, ldc);                                        \
  }                                                                                                                    \
  HIPEMU_EXPORT int hipblas##X##dgmm(void* h, int side, int m, int n, const V* a, int lda, const V* x, int incx, V* c, \
                                     int ldc) {                                                                        \
    return queue_dgmm<V>(h, side, m, n, a, lda, x, incx, c, ldc);                                                      \
  }                                                                                                                    \
  HIPEMU_EXPORT int hipblas##X##scal(void* h, int n, const V* alpha, V* x, int incx) {                                 \
    return queue_scal<V, V>(h, n, alpha, x, incx);                                                                     \
  }                                                                                                                    \
  HIPEMU_EXPORT int hipblas##X##axpy(void* h, int n, const V* alpha, const V* x, int incx, V* y, int incy) {           \
    return queue_axpy<V>(h, n, alpha, x, incx, y, incy);                                                               \
  }                                                                                                                    \
  HIPEMU_EXPORT int hipblas##X##trsm(void* h, int side, int fill, int op, int diagonal, int m, int n, const V* alpha,  \
                                     V* a, int lda, V* b, int ldb) {                                                   \
    return queue_trsm<V>(h, side, fill, op, diagonal, m, n, alpha, a, lda, b, ldb);                                    \
  }                                                                                                                    \
  HIPEMU_EXPORT int hipblas##X##syrk(void* h, int fill, int op, int n, int k, const V* alpha, const V* a, int lda,     \
                                     const V* beta, V* c, int ldc) {                                                   \
    return queue_syrk<V>(h, fill, op, n, k, alpha, a, lda, beta, c, ldc);                                              \
  }

FOR_TYPE(S, float)
FOR_TYPE(D, double)
FOR_TYPE(C, c64)
FOR_TYPE(Z, c128)

#define FOR_VECTOR(X, NORM, V, R)                                                                        \
  HIPEMU_EXPORT int hipblasI##X##amax(void* h, int n, const V* x, int incx, int* result) {               \
    return queue_amax<R, V>(h, n, x, incx, result, false);                                               \
  }                                                                                                      \
  HIPEMU_EXPORT int hipblasI##X##amin(void* h, int n, const V* x, int incx, int* result) {               \
    return queue_amax<R, V>(h, n, x, incx, result, true);                                                \
  }                                                                                                      \
  HIPEMU_EXPORT int hipblas##NORM##asum(void* h, int n, const V* x, int incx, R* result) {               \
    return queue_asum<R, V>(h, n, x, incx, result);                                                      \
  }                                                                                                      \
  HIPEMU_EXPORT int hipblas##NORM##nrm2(void* h, int n, const V* x, int incx, R* result) {               \
    return queue_nrm2<R, V>(h, n, x, incx, result);                                                      \
  }

FOR_VECTOR(s, S, float, float)
FOR_VECTOR(d, D, double, double)
FOR_VECTOR(c, Sc, c64, float)
FOR_VECTOR(z, Dz, c128, double)

#define DOT(NAME, V, CONJ)                                                                                       \
  HIPEMU_EXPORT int NAME(void* h, int n, const V* x, int incx, const V* y, int incy, V* result) {                \
    return queue_dot<V>(h, n, x, incx, y, incy, result, CONJ);                                                   \
  }
DOT(hipblasSdot, float, false)
DOT(hipblasDdot, double, false)
DOT(hipblasCdotu, c64, false)
DOT(hipblasZdotu, c128, false)
DOT(hipblasCdotc, c64, true)
DOT(hipblasZdotc, c128, true)

#define GER(NAME, V, CONJ)                                                                                       \
  HIPEMU_EXPORT int NAME(void* h, int m, int n, const V* alpha, const V* x, int incx, const V* y, int incy, V* a, \
                         int lda) {                                                                              \
    return queue_ger<V>(h, m, n, alpha, x, incx, y, incy, a, lda, CONJ);                                         \
  }
GER(hipblasSger, float, false)
GER(hipblasDger, double, false)
GER(hipblasCgeru, c64, false)
GER(hipblasZgeru, c128, false)
GER(hipblasCgerc, c64, true)
GER(hipblasZgerc, c128, true)

HIPEMU_EXPORT int hipblasCsscal(void* h, int n, const float* alpha, c64* x, int incx) {
  return queue_scal<float, c64>(h, n, alpha, x, incx);
}
HIPEMU_EXPORT int hipblasZdscal(void* h, int n, const double* alpha, c128* x, int incx) {
  return queue_scal<double, c128>(h, n, alpha, x, incx);
}

HIPEMU_EXPORT int hipblasGemmEx(void* h, int ta, int tb, int m, int n, int k, const void* alpha, const void* a,
                                int type_a, int lda, const void* b, int type_b, int ldb, const void* beta, void* c,
                                int type_c, int ldc, int compute, int) {
  return gemm_ex(h, ta, tb, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c, type_c, ldc, 0, 1, compute);
}
HIPEMU_EXPORT int hipblasGemmStridedBatchedEx(void* h, int ta, int tb, int m, int n, int k, const void* alpha,
                                              const void* a, int type_a, int lda, long long sa, const void* b,
                                              int type_b, int ldb, long long sb, const void* beta, void* c, int type_c,
                                              int ldc, long long sc, int batch, int compute, int) {
  return gemm_ex(h, ta, tb, m, n, k, alpha, a, type_a, lda, sa, b, type_b, ldb, sb, beta, c, type_c, ldc, sc, batch,
                 compute);
}
