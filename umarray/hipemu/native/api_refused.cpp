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
REFUSE(hipIpcCloseMemHandle, void*)
struct hipIpcMemHandle_t {
  char reserved[64];
};
REFUSE(hipIpcGetMemHandle, hipIpcMemHandle_t*, void*)
REFUSE(hipIpcOpenMemHandle, void**, hipIpcMemHandle_t, unsigned)

HIPEMU_EXPORT hipError_t hipStreamIsCapturing(hipStream_t, int* status) {
  HIPEMU_CALL(hipStreamIsCapturing);
  if (!status) return errors::finish(hipErrorInvalidValue);
  *status = 0;
  return errors::finish(hipSuccess);
}

// C++ functions of the real library, wanted by their mangled names.
struct hipResourceDesc;
__attribute__((visibility("default"))) hipError_t hipCreateSurfaceObject(unsigned long long*, const hipResourceDesc*);
hipError_t hipCreateSurfaceObject(unsigned long long*, const hipResourceDesc*) {
  return errors::unsupported("hipCreateSurfaceObject");
}

// The wheel asks for the name that a pointer to `__hip_surface` gives: _Z22hipCreateSurfaceObjectPyPK15hipResourceDesc
// and _Z23hipDestroySurfaceObjecty.
__attribute__((visibility("default"))) hipError_t hipDestroySurfaceObject(unsigned long long);
hipError_t hipDestroySurfaceObject(unsigned long long) { return errors::unsupported("hipDestroySurfaceObject"); }

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
  std::string name = "an unknown kernel";
  {
    const std::lock_guard<std::mutex> held(precompiled().mutex);
    const auto found = precompiled().names.find(function);
    if (found != precompiled().names.end()) name = readable(found->second.c_str());
  }
  errors::stick(hipErrorNotSupported, "precompiled device code cannot run on a CPU: " + name);
  return errors::finish(hipErrorNotSupported);
}

HIPEMU_EXPORT hipError_t hipFuncGetAttributes(void*, const void*) {
  HIPEMU_CALL(hipFuncGetAttributes);
  return errors::unsupported("hipFuncGetAttributes");
}
