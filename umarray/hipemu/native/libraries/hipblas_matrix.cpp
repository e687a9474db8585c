// hipBLAS's work on a matrix other than products of two, in plain loops.
#include "blas_kernels.h"
#include "hipblas.h"

using namespace hipemu;
using namespace hipemu::hipblas;

namespace {

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

}  // namespace

#define FOR_TYPE(X, V)                                                                                                 \
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

#define GER(NAME, V, CONJ)                                                                                        \
  HIPEMU_EXPORT int NAME(void* h, int m, int n, const V* alpha, const V* x, int incx, const V* y, int incy, V* a, \
                         int lda) {                                                                               \
    return queue_ger<V>(h, m, n, alpha, x, incx, y, incy, a, lda, CONJ);                                          \
  }
GER(hipblasSger, float, false)
GER(hipblasDger, double, false)
GER(hipblasCgeru, c64, false)
GER(hipblasZgeru, c128, false)
GER(hipblasCgerc, c64, true)
GER(hipblasZgerc, c128, true)
