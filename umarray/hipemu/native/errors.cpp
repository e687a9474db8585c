#include "errors.h"

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>

namespace hipemu::errors {
namespace {

struct Entry {
  const char* name;
  const char* text;
};

const std::map<int, Entry>& table() {
  static const auto* const entries = new std::map<int, Entry>{
      {0, {"hipSuccess", "no error"}},
      {1, {"hipErrorInvalidValue", "invalid argument"}},
      {2, {"hipErrorOutOfMemory", "out of memory"}},
      {3, {"hipErrorNotInitialized", "initialization error"}},
      {9, {"hipErrorInvalidConfiguration", "invalid configuration argument"}},
      {13, {"hipErrorInvalidSymbol", "invalid device symbol"}},
      {17, {"hipErrorInvalidDevicePointer", "invalid device pointer"}},
      {21, {"hipErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"}},
      {98, {"hipErrorInvalidDeviceFunction", "invalid device function"}},
      {100, {"hipErrorNoDevice", "no ROCm-capable device is detected"}},
      {101, {"hipErrorInvalidDevice", "invalid device ordinal"}},
      {200, {"hipErrorInvalidImage", "device kernel image is invalid"}},
      {201, {"hipErrorInvalidContext", "invalid device context"}},
      {209, {"hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"}},
      {215, {"hipErrorUnsupportedLimit", "limit is not supported on this architecture"}},
      {217, {"hipErrorPeerAccessUnsupported", "peer access is not supported between these two devices"}},
      {218, {"hipErrorInvalidKernelFile", "invalid kernel file"}},
      {301, {"hipErrorFileNotFound", "file not found"}},
      {302, {"hipErrorSharedObjectSymbolNotFound", "shared object symbol not found"}},
      {303, {"hipErrorSharedObjectInitFailed", "shared object initialization failed"}},
      {304, {"hipErrorOperatingSystem", "OS call failed or operation not supported on this OS"}},
      {400, {"hipErrorInvalidHandle", "invalid resource handle"}},
      {401, {"hipErrorIllegalState", "the operation cannot be performed in the present state"}},
      {500, {"hipErrorNotFound", "named symbol not found"}},
      {600, {"hipErrorNotReady", "device not ready"}},
      {700, {"hipErrorIllegalAddress", "an illegal memory access was encountered"}},
      {701, {"hipErrorLaunchOutOfResources", "too many resources requested for launch"}},
      {704, {"hipErrorPeerAccessAlreadyEnabled", "peer access is already enabled"}},
      {705, {"hipErrorPeerAccessNotEnabled", "peer access has not been enabled"}},
      {709, {"hipErrorContextIsDestroyed", "context is destroyed"}},
      {710, {"hipErrorAssert", "device-side assert triggered"}},
      {719, {"hipErrorLaunchFailure", "unspecified launch failure"}},
      {801, {"hipErrorNotSupported", "operation not supported"}},
      {900, {"hipErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"}},
      {999, {"hipErrorUnknown", "unknown error"}},
  };
  return *entries;
}

std::atomic<int> sticky_code{0};
std::mutex sticky_mutex;
std::string& sticky_why() {
  static auto* const why = new std::string;
  return *why;
}

thread_local hipError_t last = hipSuccess;
thread_local hipError_t explained = hipSuccess;
thread_local std::string explanation;
thread_local std::string shown;

}  // namespace

const char* name(hipError_t code) {
  const auto found = table().find(code);
  return found == table().end() ? "hipErrorUnknown" : found->second.name;
}

const char* text(hipError_t code) {
  const auto found = table().find(code);
  const char* plain = found == table().end() ? "unknown error" : found->second.text;
  std::string why;
  if (code == hipSuccess) return plain;
  if (sticky_code.load() == code) {
    const std::lock_guard<std::mutex> held(sticky_mutex);
    why = sticky_why();
  } else if (code == explained) {
    why = explanation;
  }
  if (why.empty()) return plain;
  shown = std::string(plain) + " [hipemu: " + why + "]";
  return shown.c_str();
}

hipError_t finish(hipError_t code) {
  const int stuck = sticky_code.load(std::memory_order_acquire);
  if (stuck != hipSuccess) code = static_cast<hipError_t>(stuck);
  if (code != hipSuccess) {
    last = code;
    explained = hipSuccess;
  }
  return code;
}

hipError_t take_last() {
  const hipError_t code = peek_last();
  last = hipSuccess;
  return code;
}

hipError_t peek_last() {
  const int stuck = sticky_code.load(std::memory_order_acquire);
  return stuck != hipSuccess ? static_cast<hipError_t>(stuck) : last;
}

void stick(hipError_t code, const std::string& why) {
  const std::lock_guard<std::mutex> held(sticky_mutex);
  if (sticky_code.load() != hipSuccess) return;
  sticky_why() = why;
  sticky_code.store(code, std::memory_order_release);
  std::fprintf(stderr, "hipemu: %s: %s\n", name(code), why.c_str());
}

hipError_t sticky() { return static_cast<hipError_t>(sticky_code.load(std::memory_order_acquire)); }

void clear_sticky() {
  const std::lock_guard<std::mutex> held(sticky_mutex);
  sticky_code.store(hipSuccess);
  sticky_why().clear();
  last = hipSuccess;
}

hipError_t refuse(hipError_t code, const std::string& why) {
  const hipError_t result = finish(code);
  explained = code;
  explanation = why;
  return result;
}

hipError_t unsupported(const char* what) {
  return refuse(hipErrorNotSupported, std::string(what) + " is not emulated");
}

}  // namespace hipemu::errors
