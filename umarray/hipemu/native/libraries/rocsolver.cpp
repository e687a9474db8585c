// rocSOLVER: the factorizations behind cupy.linalg, done by LAPACK (OpenBLAS's, see openblas.h), column-major like it.
//
// Without OpenBLAS every function refuses. What is not here (batched forms, bidiagonalization) is refused by name.
// rocSOLVER's enumerations: fill upper 121, lower 122; operations none 111, transposed 112, conjugated 113; side left
// 141, right 142; vectors: original 211, none 212; singular vectors all 191, of the matrix's rank 192, overwrite 193,
// none 194.
#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "../abi.h"
#include "openblas.h"
#include "work.h"

using namespace hipemu;
using c64 = std::complex<float>;
using c128 = std::complex<double>;

namespace {

constexpr int OK = 0, NOT_IMPLEMENTED = 2, INTERNAL = 6;
constexpr int COLUMN_MAJOR = 102;

// The handle that libraries/rocblas.cpp makes.
void* stream_of(void* handle) { return *static_cast<void**>(handle); }

template <class V>
struct Traits;
template <>
struct Traits<float> {
  static constexpr char letter = 's';
  using Real = float;
};
template <>
struct Traits<double> {
  static constexpr char letter = 'd';
  using Real = double;
};
template <>
struct Traits<c64> {
  static constexpr char letter = 'c';
  using Real = float;
};
template <>
struct Traits<c128> {
  static constexpr char letter = 'z';
  using Real = double;
};

// LAPACKE's function for a type; null, with a message, where there is no OpenBLAS.
template <class F, class V>
F* lapack(const char* name, const char* complex_name = nullptr) {
  const bool is_complex = Traits<V>::letter == 'c' || Traits<V>::letter == 'z';
  const char* chosen = is_complex && complex_name ? complex_name : name;
  const std::string full = std::string("LAPACKE_") + Traits<V>::letter + chosen;
  F* found = openblas::find<F>(full.c_str());
  if (!found) std::fprintf(stderr, "hipemu: rocsolver needs scipy-openblas32 (%s)\n", full.c_str());
  return found;
}

template <class F>
int queue(void* handle, const char* name, F work) {
  return enqueue(stream_of(handle), name, work) ? INTERNAL : OK;
}

template <class V>
int getrf(void* handle, int m, int n, V* a, int lda, int* pivots, int* info) {
  auto* f = lapack<int(int, int, int, V*, int, int*), V>("getrf");
  if (!f) return NOT_IMPLEMENTED;
  void* s = stream_of(handle);
  a = shift(a, s), pivots = shift(pivots, s), info = shift(info, s);
  return queue(handle, "rocsolver getrf", [=] { *info = f(COLUMN_MAJOR, m, n, a, lda, pivots); });
}

template <class V>
int getrs(void* handle, int op, int n, int columns, V* a, int lda, const int* pivots, V* b, int ldb) {
  auto* f = lapack<int(int, char, int, int, const V*, int, const int*, V*, int), V>("getrs");
  if (!f) return NOT_IMPLEMENTED;
  void* s = stream_of(handle);
  a = shift(a, s), pivots = shift(pivots, s), b = shift(b, s);
  const char letter = op == 111 ? 'N' : op == 112 ? 'T' : 'C';
  return queue(handle, "rocsolver getrs", [=] { f(COLUMN_MAJOR, letter, n, columns, a, lda, pivots, b, ldb); });
}

template <class V>
int potrf(void* handle, int fill, int n, V* a, int lda, int* info) {
  auto* f = lapack<int(int, char, int, V*, int), V>("potrf");
  if (!f) return NOT_IMPLEMENTED;
  void* s = stream_of(handle);
  a = shift(a, s), info = shift(info, s);
  return queue(handle, "rocsolver potrf", [=] { *info = f(COLUMN_MAJOR, fill == 121 ? 'U' : 'L', n, a, lda); });
}

template <class V>
int geqrf(void* handle, int m, int n, V* a, int lda, V* tau) {
  auto* f = lapack<int(int, int, int, V*, int, V*), V>("geqrf");
  if (!f) return NOT_IMPLEMENTED;
  void* s = stream_of(handle);
  a = shift(a, s), tau = shift(tau, s);
  return queue(handle, "rocsolver geqrf", [=] { f(COLUMN_MAJOR, m, n, a, lda, tau); });
}

template <class V>
int orgqr(void* handle, int m, int n, int k, V* a, int lda, V* tau) {
  auto* f = lapack<int(int, int, int, int, V*, int, const V*), V>("orgqr", "ungqr");
  if (!f) return NOT_IMPLEMENTED;
  void* s = stream_of(handle);
  a = shift(a, s), tau = shift(tau, s);
  return queue(handle, "rocsolver orgqr", [=] { f(COLUMN_MAJOR, m, n, k, a, lda, tau); });
}

template <class V>
int ormqr(void* handle, int side, int op, int m, int n, int k, V* a, int lda, V* tau, V* c, int ldc) {
  auto* f = lapack<int(int, char, char, int, int, int, const V*, int, const V*, V*, int), V>("ormqr", "unmqr");
  if (!f) return NOT_IMPLEMENTED;
  void* s = stream_of(handle);
  a = shift(a, s), tau = shift(tau, s), c = shift(c, s);
  const char letter = op == 111 ? 'N' : op == 112 ? 'T' : 'C';
  return queue(handle, "rocsolver ormqr",
               [=] { f(COLUMN_MAJOR, side == 141 ? 'L' : 'R', letter, m, n, k, a, lda, tau, c, ldc); });
}

template <class V>
int syev(void* handle, int vectors, int fill, int n, V* a, int lda, typename Traits<V>::Real* d,
         typename Traits<V>::Real* e, int* info) {
  using R = typename Traits<V>::Real;
  auto* f = lapack<int(int, char, char, int, V*, int, R*), V>("syev", "heev");
  if (!f) return NOT_IMPLEMENTED;
  void* s = stream_of(handle);
  a = shift(a, s), d = shift(d, s), e = shift(e, s), info = shift(info, s);
  return queue(handle, "rocsolver syev", [=] {
    *info = f(COLUMN_MAJOR, vectors == 211 ? 'V' : 'N', fill == 121 ? 'U' : 'L', n, a, lda, d);
    std::fill(e, e + std::max(0, n - 1), R(0));
  });
}

char singular(int vectors) { return vectors == 191 ? 'A' : vectors == 192 ? 'S' : vectors == 193 ? 'O' : 'N'; }

template <class V>
int gesvd(void* handle, int left, int right, int m, int n, V* a, int lda, typename Traits<V>::Real* values, V* u,
          int ldu, V* v, int ldv, typename Traits<V>::Real* e, int, int* info) {
  using R = typename Traits<V>::Real;
  auto* f = lapack<int(int, char, char, int, int, V*, int, R*, V*, int, V*, int, R*), V>("gesvd");
  if (!f) return NOT_IMPLEMENTED;
  void* s = stream_of(handle);
  a = shift(a, s), values = shift(values, s), u = shift(u, s), v = shift(v, s), e = shift(e, s), info = shift(info, s);
  return queue(handle, "rocsolver gesvd", [=] {
    std::vector<R> super(static_cast<size_t>(std::max(1, std::min(m, n))));
    *info = f(COLUMN_MAJOR, singular(left), singular(right), m, n, a, lda, values, u, std::max(1, ldu), v,
              std::max(1, ldv), super.data());
    for (int i = 0; i + 1 < std::min(m, n); ++i) e[i] = super[static_cast<size_t>(i)];
  });
}

}  // namespace

#define FOR_TYPE(x, V, R, Q, E)                                                                                       \
  HIPEMU_EXPORT int rocsolver_##x##getrf(void* h, int m, int n, V* a, int lda, int* pivots, int* info) {              \
    return getrf<V>(h, m, n, a, lda, pivots, info);                                                                   \
  }                                                                                                                   \
  HIPEMU_EXPORT int rocsolver_##x##getrs(void* h, int op, int n, int columns, V* a, int lda, const int* pivots, V* b, \
                                         int ldb) {                                                                   \
    return getrs<V>(h, op, n, columns, a, lda, pivots, b, ldb);                                                       \
  }                                                                                                                   \
  HIPEMU_EXPORT int rocsolver_##x##potrf(void* h, int fill, int n, V* a, int lda, int* info) {                        \
    return potrf<V>(h, fill, n, a, lda, info);                                                                        \
  }                                                                                                                   \
  HIPEMU_EXPORT int rocsolver_##x##geqrf(void* h, int m, int n, V* a, int lda, V* tau) {                              \
    return geqrf<V>(h, m, n, a, lda, tau);                                                                            \
  }                                                                                                                   \
  HIPEMU_EXPORT int rocsolver_##x##Q##gqr(void* h, int m, int n, int k, V* a, int lda, V* tau) {                      \
    return orgqr<V>(h, m, n, k, a, lda, tau);                                                                         \
  }                                                                                                                   \
  HIPEMU_EXPORT int rocsolver_##x##Q##mqr(void* h, int side, int op, int m, int n, int k, V* a, int lda, V* tau,      \
                                          V* c, int ldc) {                                                            \
    return ormqr<V>(h, side, op, m, n, k, a, lda, tau, c, ldc);                                                       \
  }                                                                                                                   \
  HIPEMU_EXPORT int rocsolver_##x##E(void* h, int vectors, int fill, int n, V* a, int lda, R* d, R* e, int* info) {   \
    return syev<V>(h, vectors, fill, n, a, lda, d, e, info);                                                          \
  }                                                                                                                   \
  HIPEMU_EXPORT int rocsolver_##x##gesvd(void* h, int left, int right, int m, int n, V* a, int lda, R* values, V* u,  \
                                         int ldu, V* v, int ldv, R* e, int fast, int* info) {                         \
    return gesvd<V>(h, left, right, m, n, a, lda, values, u, ldu, v, ldv, e, fast, info);                             \
  }

FOR_TYPE(s, float, float, or, syev)
FOR_TYPE(d, double, double, or, syev)
FOR_TYPE(c, c64, float, un, heev)
FOR_TYPE(z, c128, double, un, heev)
