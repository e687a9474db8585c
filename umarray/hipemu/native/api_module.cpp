// hipModule*: code that hiprtc made, loaded and launched.
#include "abi.h"
#include "calls.h"
#include "errors.h"

using namespace hipemu;

#define REFUSE(name, ...)                         \
  HIPEMU_EXPORT hipError_t name(__VA_ARGS__) {    \
    HIPEMU_CALL(name);                            \
    return errors::unsupported(#name);            \
  }

REFUSE(hipModuleLoad, hipModule_t*, const char*)
REFUSE(hipModuleLoadData, hipModule_t*, const void*)
REFUSE(hipModuleUnload, hipModule_t)
REFUSE(hipModuleGetFunction, hipFunction_t*, hipModule_t, const char*)
REFUSE(hipModuleGetGlobal, hipDeviceptr_t*, size_t*, hipModule_t, const char*)
REFUSE(hipFuncGetAttribute, int*, int, hipFunction_t)
REFUSE(hipModuleLaunchKernel, hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
       hipStream_t, void**, void**)
