// hipBLAS's matrix products: by OpenBLAS where it is installed, else plain loops.
#include "blas_kernels.h"
#include "blas_types.h"
#include "hipblas.h"
#include "openblas.h"

using namespace hipemu;
using namespace hipemu::hipblas;

namespace {

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

using blas::Type;

Status gemm_ex(void* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int number_a,
               int lda, long long stride_a, const void* b, int number_b, int ldb, long long stride_b, const void* beta,
               void* c, int number_c, int ldc, long long stride_c, int batch, int number) {
  if (!handle) return NOT_INITIALIZED;
  const Handle& h = *static_cast<Handle*>(handle);
  const auto full = [&](auto one) {
    using V = decltype(one);
    return queue_gemm<V>(handle, ta, tb, m, n, k, static_cast<const V*>(alpha), static_cast<const V*>(a), lda, stride_a,
                         static_cast<const V*>(b), ldb, stride_b, static_cast<const V*>(beta), static_cast<V*>(c), ldc,
                         stride_c, batch);
  };
  const Type type_a = blas::data_type(number_a), type_b = blas::data_type(number_b), type_c = blas::data_type(number_c);
  const Type compute = blas::compute_type(number, type_a);
  if (type_a != type_b) return refuse("hipblasGemmEx with operands of two types");
  if (type_a == type_c && type_a == compute) {
    if (type_a == Type::r32) return full(float{});
    if (type_a == Type::r64) return full(double{});
    if (type_a == Type::c32) return full(c64{});
    if (type_a == Type::c64) return full(c128{});
  }
  if (type_a != Type::r16 || (type_c != Type::r16 && type_c != Type::r32) ||
      (compute != Type::r32 && compute != Type::r16)) {
    return refuse("hipblasGemmEx with these types");
  }
  if (h.pointer_mode) return refuse("hipblasGemmEx of float16 with device scalars");
  const auto read = [&](const void* p) {
    return compute == Type::r32 ? *static_cast<const float*>(p)
                                : hipemu_half_to_float(*static_cast<const uint16_t*>(p));
  };
  const float x = read(alpha), y = read(beta);
  const auto* left = static_cast<const uint16_t*>(shift(a, h.stream));
  const auto* right = static_cast<const uint16_t*>(shift(b, h.stream));
  void* out = shift(c, h.stream);
  return status(enqueue(h.stream, "hipblasGemmEx", [=] {
    const auto half = [](uint16_t v) { return hipemu_half_to_float(v); };
    for (int i = 0; i < batch; ++i) {
      const uint16_t *p = left + i * stride_a, *q = right + i * stride_b;
      if (type_c == Type::r16) {
        blas::gemm_converted(ta, tb, m, n, k, x, p, lda, q, ldb, y, static_cast<uint16_t*>(out) + i * stride_c, ldc,
                             half, [](float v, float scale, uint16_t old) {
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

#define FOR_TYPE(X, V)                                                                                             \
  HIPEMU_EXPORT int hipblas##X##gemm(void* h, int ta, int tb, int m, int n, int k, const V* alpha, const V* a,     \
                                     int lda, const V* b, int ldb, const V* beta, V* c, int ldc) {                 \
    return queue_gemm<V>(h, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);                     \
  }                                                                                                                \
  HIPEMU_EXPORT int hipblas##X##gemmStridedBatched(                                                                \
      void* h, int ta, int tb, int m, int n, int k, const V* alpha, const V* a, int lda, long long sa, const V* b, \
      int ldb, long long sb, const V* beta, V* c, int ldc, long long sc, int batch) {                              \
    return queue_gemm<V>(h, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batch);              \
  }                                                                                                                \
  HIPEMU_EXPORT int hipblas##X##gemmBatched(void* h, int ta, int tb, int m, int n, int k, const V* alpha,          \
                                            const V* const* a, int lda, const V* const* b, int ldb, const V* beta, \
                                            V* const* c, int ldc, int batch) {                                     \
    return queue_gemm_batched<V>(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batch);                  \
  }

FOR_TYPE(S, float)
FOR_TYPE(D, double)
FOR_TYPE(C, c64)
FOR_TYPE(Z, c128)

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
