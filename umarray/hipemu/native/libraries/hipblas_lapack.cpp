// hipBLAS's batched factorizations, by LAPACK (see openblas.h); refused by name without OpenBLAS.
#include <algorithm>
#include <string>
#include <vector>

#include "hipblas.h"
#include "openblas.h"

using namespace hipemu;
using namespace hipemu::hipblas;

namespace {

template <class F>
F* lapack(char letter, const char* name) {
  F* found = openblas::find<F>((std::string("LAPACKE_") + letter + name).c_str());
  if (!found) std::fprintf(stderr, "hipemu: hipblas%cgetr*Batched needs scipy-openblas32\n", letter - 'a' + 'A');
  return found;
}

template <class F>
int queue(void* handle, F work) {
  return enqueue(stream_of(handle), "hipblas batched LU", work) ? EXECUTION_FAILED : OK;
}

template <class V>
int getrf(char letter, void* handle, int n, V* const* a, int lda, int* pivots, int* info, int batch) {
  auto* f = lapack<int(int, int, int, V*, int, int*)>(letter, "getrf");
  if (!f || !pivots) return NOT_SUPPORTED;
  void* s = stream_of(handle);
  a = shift(a, s), pivots = shift(pivots, s), info = shift(info, s);
  return queue(handle, [=] {
    for (int i = 0; i < batch; ++i) info[i] = f(COLUMN_MAJOR, n, n, shift_here(a[i]), lda, pivots + i * n);
  });
}

template <class V>
int getrs(char letter, void* handle, int op, int n, int columns, V* const* a, int lda, const int* pivots, V* const* b,
          int ldb, int* info, int batch) {
  auto* f = lapack<int(int, char, int, int, const V*, int, const int*, V*, int)>(letter, "getrs");
  if (!f || !pivots) return NOT_SUPPORTED;
  void* s = stream_of(handle);
  a = shift(a, s), pivots = shift(pivots, s), b = shift(b, s);
  *info = 0;  // on the host: says only whether the arguments were valid
  const char way = op == 111 ? 'N' : op == 112 ? 'T' : 'C';
  return queue(handle, [=] {
    for (int i = 0; i < batch; ++i) {
      f(COLUMN_MAJOR, way, n, columns, shift_here(a[i]), lda, pivots + i * n, shift_here(b[i]), ldb);
    }
  });
}

template <class V>
int getri(char letter, void* handle, int n, V* const* a, int lda, const int* pivots, V* const* c, int ldc, int* info,
          int batch) {
  auto* f = lapack<int(int, int, V*, int, const int*)>(letter, "getri");
  if (!f || !pivots) return NOT_SUPPORTED;
  void* s = stream_of(handle);
  a = shift(a, s), pivots = shift(pivots, s), c = shift(c, s), info = shift(info, s);
  return queue(handle, [=] {
    for (int i = 0; i < batch; ++i) {
      const V* from = shift_here(a[i]);
      V* to = shift_here(c[i]);
      for (ptrdiff_t j = 0; j < n; ++j) std::copy(from + j * lda, from + j * lda + n, to + j * ldc);
      info[i] = f(COLUMN_MAJOR, n, to, ldc, pivots + i * n);
    }
  });
}

}  // namespace

#define FOR_TYPE(X, x, V)                                                                                             \
  HIPEMU_EXPORT int hipblas##X##getrfBatched(void* h, int n, V* const* a, int lda, int* pivots, int* info,            \
                                             int batch) {                                                             \
    return getrf<V>(x, h, n, a, lda, pivots, info, batch);                                                            \
  }                                                                                                                   \
  HIPEMU_EXPORT int hipblas##X##getrsBatched(void* h, int op, int n, int columns, V* const* a, int lda,               \
                                             const int* pivots, V* const* b, int ldb, int* info, int batch) {         \
    return getrs<V>(x, h, op, n, columns, a, lda, pivots, b, ldb, info, batch);                                       \
  }                                                                                                                   \
  HIPEMU_EXPORT int hipblas##X##getriBatched(void* h, int n, V* const* a, int lda, int* pivots, V* const* c, int ldc, \
                                             int* info, int batch) {                                                  \
    return getri<V>(x, h, n, a, lda, pivots, c, ldc, info, batch);                                                    \
  }

FOR_TYPE(S, 's', float)
FOR_TYPE(D, 'd', double)
FOR_TYPE(C, 'c', std::complex<float>)
FOR_TYPE(Z, 'z', std::complex<double>)
