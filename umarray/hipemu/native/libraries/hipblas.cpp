// hipBLAS: the part that CuPy calls often. The rest of the library is refused by name (umarray/hipemu/stubs.py).
//
// Here: handles. Products are in hipblas_gemm.cpp, other work on matrices in hipblas_matrix.cpp, on vectors in
// hipblas_vector.cpp, factorizations in hipblas_lapack.cpp. Work is queued on the handle's stream; scalars follow its
// pointer mode: host scalars are read by the call, device scalars when the stream gets there; a host result is waited
// for.
#include "hipblas.h"

using namespace hipemu::hipblas;

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
