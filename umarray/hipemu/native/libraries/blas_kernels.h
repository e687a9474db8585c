// Dense linear algebra in plain loops, column-major, for any element type. Sums are kept in a wider type for half.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../device/hipemu_half_bits.h"

namespace hipemu::blas {

enum Operation { N = 111, T = 112, C = 113 };

template <class T>
struct is_complex : std::false_type {};
template <class T>
struct is_complex<std::complex<T>> : std::true_type {};

template <class V>
inline V conjugate(const V& v) {
  if constexpr (is_complex<V>::value) {
    return std::conj(v);
  } else {
    return v;
  }
}

// Element (i, j) of op(A).
template <class V>
inline V element(const V* a, ptrdiff_t lead, int op, ptrdiff_t i, ptrdiff_t j) {
  if (op == N) return a[i + j * lead];
  const V v = a[j + i * lead];
  return op == C ? conjugate(v) : v;
}

template <class V>
void gemm(int op_a, int op_b, int m, int n, int k, V alpha, const V* a, int lda, const V* b, int ldb, V beta, V* c,
          int ldc) {
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      V sum{};
      for (int l = 0; l < k; ++l) sum += element(a, lda, op_a, i, l) * element(b, ldb, op_b, l, j);
      V& out = c[i + static_cast<ptrdiff_t>(j) * ldc];
      out = beta == V{} ? alpha * sum : alpha * sum + beta * out;
    }
  }
}

// Mixed precision: elements converted on the way in and out, float sums.
template <class In, class Out, class Load, class Store>
void gemm_converted(int op_a, int op_b, int m, int n, int k, float alpha, const In* a, ptrdiff_t lda, const In* b,
                    ptrdiff_t ldb, float beta, Out* c, ptrdiff_t ldc, Load load, Store store) {
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      float sum = 0;
      for (int l = 0; l < k; ++l) {
        sum += load(op_a == N ? a[i + l * lda] : a[l + i * lda]) * load(op_b == N ? b[l + j * ldb] : b[j + l * ldb]);
      }
      Out& out = c[i + j * ldc];
      out = store(alpha * sum, beta, out);
    }
  }
}

}  // namespace hipemu::blas
