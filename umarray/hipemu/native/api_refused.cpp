// What is not emulated and says so: graphs, capture, interprocess memory, surfaces, and the precompiled kernels that
// sit inside the wheel. Its callers do not always check a launch, so a launch of one of those is a sticky error.
#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "abi.h"
#include "calls.h"
#include "errors.h"

using namespace hipemu;

#define REFUSE(name, ...)                         \
  HIPEMU_EXPORT hipError_t name(__VA_ARGS__) {    \
    HIPEMU_CALL(name);                            \
    return errors::unsupported(#name);            \
  }

REFUSE(hipGraphDestroy, void*)
REFUSE(hipGraphExecDestroy, void*)
REFUSE(hipGraphInstantiate, void**, void*, void**, char*, size_t)
REFUSE(hipGraphLaunch, void*, hipStream_t)
REFUSE(hipStreamBeginCapture, hipStream_t, int)
REFUSE(hipStreamEndCapture, hipStream_t, void**)
REFUSE(hipGraphDebugDotPrint, void*, const char*, unsigned)
REFUSE(hipIpcCloseMemHandle, void*)
struct hipIpcMemHandle_t {
  char reserved[64];
};
REFUSE(hipIpcGetMemHandle, hipIpcMemHandle_t*, void*)
REFUSE(hipIpcOpenMemHandle, void**, hipIpcMemHandle_t, unsigned)

// Nothing is ever being captured, and these say so.
HIPEMU_EXPORT hipError_t hipStreamIsCapturing(hipStream_t, int* status) {
  HIPEMU_CALL(hipStreamIsCapturing);
  if (!status) return errors::finish(hipErrorInvalidValue);
  *status = 0;
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipStreamGetCaptureInfo(hipStream_t, int* status, unsigned long long* number) {
  HIPEMU_CALL(hipStreamGetCaptureInfo);
  if (!status) return errors::finish(hipErrorInvalidValue);
  *status = 0;
  if (number) *number = 0;
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipStreamGetCaptureInfo_v2(hipStream_t, int* status, unsigned long long* number, void** graph,
                                                    const void*** dependencies, size_t* count) {
  HIPEMU_CALL(hipStreamGetCaptureInfo_v2);
  if (!status) return errors::finish(hipErrorInvalidValue);
  *status = 0;
  if (number) *number = 0;
  if (graph) *graph = nullptr;
  if (dependencies) *dependencies = nullptr;
  if (count) *count = 0;
  return errors::finish(hipSuccess);
}

// Surfaces: C++ functions in ROCm 5, wanted by the names that a pointer to `__hip_surface` gives
// (_Z22hipCreateSurfaceObjectPyPK15hipResourceDesc, _Z23hipDestroySurfaceObjecty); plain C since ROCm 6.
struct hipResourceDesc;
#if HIPEMU_ROCM == 5
__attribute__((visibility("default"))) hipError_t hipCreateSurfaceObject(unsigned long long*, const hipResourceDesc*);
hipError_t hipCreateSurfaceObject(unsigned long long*, const hipResourceDesc*) {
  HIPEMU_CALL(hipCreateSurfaceObject);
  return errors::unsupported("hipCreateSurfaceObject");
}
__attribute__((visibility("default"))) hipError_t hipDestroySurfaceObject(unsigned long long);
hipError_t hipDestroySurfaceObject(unsigned long long) {
  HIPEMU_CALL(hipDestroySurfaceObject);
  return errors::unsupported("hipDestroySurfaceObject");
}
#else
REFUSE(hipCreateSurfaceObject, void**, const hipResourceDesc*)
REFUSE(hipDestroySurfaceObject, void*)
#endif

namespace {

struct Precompiled {
  std::mutex mutex;
  std::map<const void*, std::string> names;
};

Precompiled& precompiled() {
  static auto* const p = new Precompiled;
  return *p;
}

std::string readable(const char* name) {
  int status = 0;
  char* plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string text = status == 0 && plain ? plain : name;
  std::free(plain);
  if (text.size() > 160) text = text.substr(0, 160) + "...";
  return text;
}

// The sticky error of a call that means to run a kernel of the wheel's own.
hipError_t refuse_precompiled(const void* function) {
  std::string name = "an unknown kernel";
  {
    const std::lock_guard<std::mutex> held(precompiled().mutex);
    const auto found = precompiled().names.find(function);
    if (found != precompiled().names.end()) name = readable(found->second.c_str());
  }
  errors::stick(hipErrorNotSupported, "precompiled device code cannot run on a CPU: " + name);
  return errors::finish(hipErrorNotSupported);
}

}  // namespace

HIPEMU_EXPORT void** __hipRegisterFatBinary(const void*) {
  static void* modules[1];
  return modules;
}

HIPEMU_EXPORT void __hipUnregisterFatBinary(void**) {}

HIPEMU_EXPORT void __hipRegisterFunction(void**, const void* host_function, char*, const char* name, unsigned, void*,
                                         void*, void*, void*, int*) {
  const std::lock_guard<std::mutex> held(precompiled().mutex);
  precompiled().names[host_function] = name;
}

HIPEMU_EXPORT void __hipRegisterVar(void**, void*, char*, char*, int, size_t, int, int) {}

HIPEMU_EXPORT hipError_t __hipPushCallConfiguration(dim3, dim3, size_t, hipStream_t) { return hipSuccess; }

HIPEMU_EXPORT hipError_t __hipPopCallConfiguration(dim3*, dim3*, size_t*, hipStream_t*) { return hipSuccess; }

HIPEMU_EXPORT hipError_t hipLaunchKernel(const void* function, dim3, dim3, void**, size_t, hipStream_t) {
  HIPEMU_CALL(hipLaunchKernel);
  return refuse_precompiled(function);
}

// Asked by rocPRIM before it launches.
HIPEMU_EXPORT hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void* function, int, size_t) {
  HIPEMU_CALL(hipOccupancyMaxActiveBlocksPerMultiprocessor);
  return refuse_precompiled(function);
}

HIPEMU_EXPORT hipError_t hipOccupancyMaxPotentialBlockSize(int*, int*, const void* function, size_t, int) {
  HIPEMU_CALL(hipOccupancyMaxPotentialBlockSize);
  return refuse_precompiled(function);
}

HIPEMU_EXPORT hipError_t hipFuncGetAttributes(void*, const void* function) {
  HIPEMU_CALL(hipFuncGetAttributes);
  return refuse_precompiled(function);
}
