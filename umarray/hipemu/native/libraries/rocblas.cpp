// rocBLAS: only the handle, which rocSOLVER's callers make.
#include "../abi.h"

namespace {
struct Handle {
  void* stream = nullptr;
};
}  // namespace

HIPEMU_EXPORT int rocblas_create_handle(void** handle) {
  *handle = new Handle;
  return 0;
}
HIPEMU_EXPORT int rocblas_destroy_handle(void* handle) {
  delete static_cast<Handle*>(handle);
  return 0;
}
HIPEMU_EXPORT int rocblas_set_stream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}
HIPEMU_EXPORT int rocblas_get_stream(void* handle, void** stream) {
  *stream = static_cast<Handle*>(handle)->stream;
  return 0;
}
