// hipBLAS's work on vectors, in plain loops.
#include <cmath>

#include "blas_kernels.h"
#include "hipblas.h"

using namespace hipemu;
using namespace hipemu::hipblas;

namespace {

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

}  // namespace

#define FOR_TYPE(X, V)                                                                                       \
  HIPEMU_EXPORT int hipblas##X##scal(void* h, int n, const V* alpha, V* x, int incx) {                       \
    return queue_scal<V, V>(h, n, alpha, x, incx);                                                           \
  }                                                                                                          \
  HIPEMU_EXPORT int hipblas##X##axpy(void* h, int n, const V* alpha, const V* x, int incx, V* y, int incy) { \
    return queue_axpy<V>(h, n, alpha, x, incx, y, incy);                                                     \
  }

FOR_TYPE(S, float)
FOR_TYPE(D, double)
FOR_TYPE(C, c64)
FOR_TYPE(Z, c128)

#define FOR_VECTOR(X, NORM, V, R)                                                          \
  HIPEMU_EXPORT int hipblasI##X##amax(void* h, int n, const V* x, int incx, int* result) { \
    return queue_amax<R, V>(h, n, x, incx, result, false);                                 \
  }                                                                                        \
  HIPEMU_EXPORT int hipblasI##X##amin(void* h, int n, const V* x, int incx, int* result) { \
    return queue_amax<R, V>(h, n, x, incx, result, true);                                  \
  }                                                                                        \
  HIPEMU_EXPORT int hipblas##NORM##asum(void* h, int n, const V* x, int incx, R* result) { \
    return queue_asum<R, V>(h, n, x, incx, result);                                        \
  }                                                                                        \
  HIPEMU_EXPORT int hipblas##NORM##nrm2(void* h, int n, const V* x, int incx, R* result) { \
    return queue_nrm2<R, V>(h, n, x, incx, result);                                        \
  }

FOR_VECTOR(s, S, float, float)
FOR_VECTOR(d, D, double, double)
FOR_VECTOR(c, Sc, c64, float)
FOR_VECTOR(z, Dz, c128, double)

#define DOT(NAME, V, CONJ)                                                                        \
  HIPEMU_EXPORT int NAME(void* h, int n, const V* x, int incx, const V* y, int incy, V* result) { \
    return queue_dot<V>(h, n, x, incx, y, incy, result, CONJ);                                    \
  }
DOT(hipblasSdot, float, false)
DOT(hipblasDdot, double, false)
DOT(hipblasCdotu, c64, false)
DOT(hipblasZdotu, c128, false)
DOT(hipblasCdotc, c64, true)
DOT(hipblasZdotc, c128, true)

HIPEMU_EXPORT int hipblasCsscal(void* h, int n, const float* alpha, c64* x, int incx) {
  return queue_scal<float, c64>(h, n, alpha, x, incx);
}
HIPEMU_EXPORT int hipblasZdscal(void* h, int n, const double* alpha, c128* x, int incx) {
  return queue_scal<double, c128>(h, n, alpha, x, incx);
}
