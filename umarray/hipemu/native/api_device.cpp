// hipDevice*, hipGet*, errors, versions: what needs no memory and no stream.
#include <cstdio>
#include <cstring>
#include <string>

#include "abi.h"
#include "allocations.h"
#include "calls.h"
#include "device.h"
#include "errors.h"
#include "faults.h"
#include "rocm.h"
#include "stream.h"

using namespace hipemu;

HIPEMU_EXPORT hipError_t hipInit(unsigned flags) {
  HIPEMU_CALL(hipInit);
  return errors::finish(flags ? hipErrorInvalidValue : hipSuccess);
}

HIPEMU_EXPORT hipError_t hipGetDeviceCount(int* count) {
  HIPEMU_CALL(hipGetDeviceCount);
  if (!count) return errors::finish(hipErrorInvalidValue);
  *count = device::count();
  return hipSuccess;
}

HIPEMU_EXPORT hipError_t hipGetDevice(int* current) {
  HIPEMU_CALL(hipGetDevice);
  if (!current) return errors::finish(hipErrorInvalidValue);
  *current = device::current();
  return hipSuccess;
}

HIPEMU_EXPORT hipError_t hipSetDevice(int chosen) {
  HIPEMU_CALL(hipSetDevice);
  if (!device::valid(chosen)) return errors::finish(hipErrorInvalidDevice);
  device::set_current(chosen);
  return hipSuccess;
}

HIPEMU_EXPORT hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int which) {
  HIPEMU_CALL(hipGetDeviceProperties);
  if (!properties) return errors::finish(hipErrorInvalidValue);
  if (!device::valid(which)) return errors::finish(hipErrorInvalidDevice);
  device::fill_properties(which, properties);
  return hipSuccess;
}

// Since ROCm 6 what the header calls hipGetDeviceProperties; the name above keeps the layout of ROCm 5.
HIPEMU_EXPORT hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int which) {
  HIPEMU_CALL(hipGetDevicePropertiesR0600);
  if (!properties) return errors::finish(hipErrorInvalidValue);
  if (!device::valid(which)) return errors::finish(hipErrorInvalidDevice);
  device::fill_properties(which, properties);
  return hipSuccess;
}

HIPEMU_EXPORT hipError_t hipDeviceGetAttribute(int* value, int attribute, int which) {
  HIPEMU_CALL(hipDeviceGetAttribute);
  if (!value) return errors::finish(hipErrorInvalidValue);
  if (!device::valid(which)) return errors::finish(hipErrorInvalidDevice);
  const hipError_t result = device::attribute_value(attribute, which, value);
  if (result == hipSuccess) return errors::finish(result);
  const char* const more = rocm::MAJOR == 5 ? "; CuPy 13 means another by it, as ROCm 4 numbered them" : "";
  return errors::refuse(result, "ROCm " + std::to_string(rocm::MAJOR) + " answers no device attribute of number " +
                                    std::to_string(attribute) + more);
}

HIPEMU_EXPORT hipError_t hipDeviceGetPCIBusId(char* id, int length, int which) {
  HIPEMU_CALL(hipDeviceGetPCIBusId);
  if (!id || length < 13) return errors::finish(hipErrorInvalidValue);
  if (!device::valid(which)) return errors::finish(hipErrorInvalidDevice);
  std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0", 3 + which);
  return hipSuccess;
}

HIPEMU_EXPORT hipError_t hipDeviceGetByPCIBusId(int* which, const char* id) {
  HIPEMU_CALL(hipDeviceGetByPCIBusId);
  if (!which || !id) return errors::finish(hipErrorInvalidValue);
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) return errors::finish(hipErrorInvalidValue);
  const int found = static_cast<int>(bus) - 3;
  if (domain || slot || !device::valid(found)) return errors::finish(hipErrorInvalidDevice);
  *which = found;
  return hipSuccess;
}

HIPEMU_EXPORT hipError_t hipDeviceGetLimit(size_t* value, int limit) {
  HIPEMU_CALL(hipDeviceGetLimit);
  if (!value) return errors::finish(hipErrorInvalidValue);
  if (limit != 2) return errors::finish(hipErrorUnsupportedLimit);  // only hipLimitMallocHeapSize
  *value = size_t{4} << 20;
  return hipSuccess;
}

HIPEMU_EXPORT hipError_t hipDeviceSetLimit(int, size_t) {
  HIPEMU_CALL(hipDeviceSetLimit);
  return errors::finish(hipErrorUnsupportedLimit);
}

HIPEMU_EXPORT hipError_t hipDeviceSynchronize() {
  HIPEMU_CALL(hipDeviceSynchronize);
  streams::wait_device(device::current());
  faults::watch();
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipDeviceReset() {
  HIPEMU_CALL(hipDeviceReset);
  streams::wait_device(device::current());
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipDevicePrimaryCtxRelease(int which) {
  HIPEMU_CALL(hipDevicePrimaryCtxRelease);
  return errors::finish(device::valid(which) ? hipSuccess : hipErrorInvalidDevice);
}

HIPEMU_EXPORT hipError_t hipDeviceCanAccessPeer(int* can, int from, int to) {
  HIPEMU_CALL(hipDeviceCanAccessPeer);
  if (!can) return errors::finish(hipErrorInvalidValue);
  if (!device::valid(from) || !device::valid(to)) return errors::finish(hipErrorInvalidDevice);
  *can = from != to;
  return hipSuccess;
}

HIPEMU_EXPORT hipError_t hipDeviceEnablePeerAccess(int to, unsigned flags) {
  HIPEMU_CALL(hipDeviceEnablePeerAccess);
  if (flags) return errors::finish(hipErrorInvalidValue);
  if (!device::valid(to) || to == device::current()) return errors::finish(hipErrorInvalidDevice);
  const hipError_t result = device::set_peer(device::current(), to, true);
  if (result == hipSuccess) allocations::open_peer(device::current(), to, true);
  return errors::finish(result);
}

HIPEMU_EXPORT hipError_t hipDeviceDisablePeerAccess(int to) {
  HIPEMU_CALL(hipDeviceDisablePeerAccess);
  if (!device::valid(to) || to == device::current()) return errors::finish(hipErrorInvalidDevice);
  const hipError_t result = device::set_peer(device::current(), to, false);
  if (result == hipSuccess) allocations::open_peer(device::current(), to, false);
  return errors::finish(result);
}

HIPEMU_EXPORT hipError_t hipRuntimeGetVersion(int* version) {
  HIPEMU_CALL(hipRuntimeGetVersion);
  if (!version) return errors::finish(hipErrorInvalidValue);
  *version = rocm::VERSION;
  return hipSuccess;
}

HIPEMU_EXPORT hipError_t hipDriverGetVersion(int* version) {
  HIPEMU_CALL(hipDriverGetVersion);
  if (!version) return errors::finish(hipErrorInvalidValue);
  *version = rocm::VERSION;
  return hipSuccess;
}

HIPEMU_EXPORT const char* hipGetErrorName(hipError_t code) { return errors::name(code); }
HIPEMU_EXPORT const char* hipGetErrorString(hipError_t code) { return errors::text(code); }
HIPEMU_EXPORT hipError_t hipGetLastError() { return errors::take_last(); }
HIPEMU_EXPORT hipError_t hipPeekAtLastError() { return errors::peek_last(); }

HIPEMU_EXPORT hipError_t hipProfilerStart() { return hipSuccess; }
HIPEMU_EXPORT hipError_t hipProfilerStop() { return hipSuccess; }
