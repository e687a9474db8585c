// hipMalloc* to hipPointerGetAttributes: the calls that make, copy and describe memory.
#include <cstring>

#include "abi.h"
#include "advice.h"
#include "allocations.h"
#include "calls.h"
#include "config.h"
#include "copy.h"
#include "device.h"
#include "errors.h"
#include "residency.h"
#include "rocm.h"
#include "space.h"
#include "stream.h"

using namespace hipemu;

HIPEMU_EXPORT hipError_t hipMalloc(void** pointer, size_t bytes) {
  HIPEMU_CALL(hipMalloc);
  if (!pointer) return errors::finish(hipErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return errors::finish(hipSuccess);
  return errors::finish(allocations::make(Kind::device, bytes, device::current(), 0, pointer));
}

HIPEMU_EXPORT hipError_t hipMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  HIPEMU_CALL(hipMallocManaged);
  if (!pointer || flags != hipMemAttachGlobal) return errors::finish(hipErrorInvalidValue);
  *pointer = nullptr;
  return errors::finish(allocations::make(Kind::managed, bytes, device::current(), flags, pointer));
}

HIPEMU_EXPORT hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned flags) {
  HIPEMU_CALL(hipHostMalloc);
  if (!pointer) return errors::finish(hipErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return errors::finish(hipSuccess);
  return errors::finish(allocations::make(Kind::pinned, bytes, device::current(), flags, pointer));
}

HIPEMU_EXPORT hipError_t hipFree(void* pointer) {
  HIPEMU_CALL(hipFree);
  if (!pointer) return errors::finish(hipSuccess);
  const hipError_t result = allocations::release(pointer, false);
  return result ? errors::finish(result) : hipSuccess;
}

HIPEMU_EXPORT hipError_t hipHostFree(void* pointer) {
  HIPEMU_CALL(hipHostFree);
  if (!pointer) return errors::finish(hipSuccess);
  const hipError_t result = allocations::release(pointer, true);
  return result ? errors::finish(result) : hipSuccess;
}

HIPEMU_EXPORT hipError_t hipHostGetDevicePointer(void** device_pointer, void* host, unsigned) {
  HIPEMU_CALL(hipHostGetDevicePointer);
  Allocation found;
  size_t at;
  if (!device_pointer || !allocations::find(host, &found, &at) || found.kind == Kind::device) {
    return errors::finish(hipErrorInvalidValue);
  }
  *device_pointer = host;
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  HIPEMU_CALL(hipMemGetInfo);
  if (!free || !total) return errors::finish(hipErrorInvalidValue);
  *total = config().memory;
  *free = config().memory - residency::used(device::current());
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  HIPEMU_CALL(hipMemcpy);
  return errors::finish(copy::copy(to, from, bytes, kind, streams::resolve(nullptr), true));
}

HIPEMU_EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                                        hipStream_t handle) {
  HIPEMU_CALL(hipMemcpyAsync);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  return errors::finish(copy::copy(to, from, bytes, kind, stream, false));
}

HIPEMU_EXPORT hipError_t hipMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  HIPEMU_CALL(hipMemcpyPeer);
  if (!device::valid(to_device) || !device::valid(from_device)) return errors::finish(hipErrorInvalidDevice);
  return errors::finish(copy::copy(to, from, bytes, hipMemcpyDefault, streams::resolve(nullptr), true));
}

HIPEMU_EXPORT hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                            hipStream_t handle) {
  HIPEMU_CALL(hipMemcpyPeerAsync);
  if (!device::valid(to_device) || !device::valid(from_device)) return errors::finish(hipErrorInvalidDevice);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  return errors::finish(copy::copy(to, from, bytes, hipMemcpyDefault, stream, false));
}

HIPEMU_EXPORT hipError_t hipMemset(void* to, int value, size_t bytes) {
  HIPEMU_CALL(hipMemset);
  return errors::finish(copy::fill(to, value, bytes, streams::resolve(nullptr), true));
}

HIPEMU_EXPORT hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t handle) {
  HIPEMU_CALL(hipMemsetAsync);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  return errors::finish(copy::fill(to, value, bytes, stream, false));
}

namespace {

// The managed range that a hint names; the runtime rejects empty ranges and ranges past the allocation's end.
hipError_t managed_range(const void* pointer, size_t bytes, size_t* at) {
  Allocation found;
  if (bytes == 0 || !allocations::find(pointer, &found, at)) return hipErrorInvalidValue;
  if (found.kind != Kind::managed || !found.holds(*at, bytes)) return hipErrorInvalidValue;
  return hipSuccess;
}

}  // namespace

HIPEMU_EXPORT hipError_t hipMemPrefetchAsync(const void* pointer, size_t bytes, int place, hipStream_t handle) {
  HIPEMU_CALL(hipMemPrefetchAsync);
  size_t at;
  if (place != hipCpuDeviceId && !device::valid(place)) return errors::finish(hipErrorInvalidDevice);
  if (const hipError_t bad = managed_range(pointer, bytes, &at)) return errors::finish(bad);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  if (!config().xnack) return errors::finish(hipSuccess);  // a warning in the runtime's log, and success: as ROCm does
  advice::set_prefetched(at, bytes, place);
  const Mark done = streams::submit(stream, [=] { residency::prefetch(at, bytes, place); });
  if (config().blocking_prefetch) done.wait();
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipMemAdvise(const void* pointer, size_t bytes, hipMemoryAdvise what, int place) {
  HIPEMU_CALL(hipMemAdvise);
  size_t at;
  const bool plain = what >= hipMemAdviseSetReadMostly && what <= hipMemAdviseUnsetAccessedBy;
  if (!plain && what != hipMemAdviseSetCoarseGrain && what != hipMemAdviseUnsetCoarseGrain) {
    return errors::finish(hipErrorInvalidValue);
  }
  if (place != hipCpuDeviceId && !device::valid(place)) return errors::finish(hipErrorInvalidDevice);
  if (const hipError_t bad = managed_range(pointer, bytes, &at)) return errors::finish(bad);
  if (!config().xnack) return errors::finish(hipSuccess);
  advice::set(at, bytes, what, place);
  residency::advice_changed(at, bytes);
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipMemRangeGetAttribute(void* data, size_t size, hipMemRangeAttribute attribute,
                                                 const void* pointer, size_t bytes) {
  HIPEMU_CALL(hipMemRangeGetAttribute);
  size_t at;
  if (!data) return errors::finish(hipErrorInvalidValue);
  if (const hipError_t bad = managed_range(pointer, bytes, &at)) return errors::finish(bad);
  if (!config().xnack) return errors::finish(hipErrorInvalidValue);  // without HMM there is nothing to ask
  return errors::finish(advice::read(data, size, attribute, at, bytes));
}

HIPEMU_EXPORT hipError_t hipMemRangeGetAttributes(void** data, size_t* sizes, hipMemRangeAttribute* attributes,
                                                  size_t count, const void* pointer, size_t bytes) {
  HIPEMU_CALL(hipMemRangeGetAttributes);
  if (!data || !sizes || !attributes || !count) return errors::finish(hipErrorInvalidValue);
  for (size_t i = 0; i < count; ++i) {
    const hipError_t bad = hipMemRangeGetAttribute(data[i], sizes[i], attributes[i], pointer, bytes);
    if (bad) return bad;
  }
  return errors::finish(hipSuccess);
}

namespace {

// What is not ours is an error in ROCm 5, which CuPy 13.0 to 13.3 takes for a failure of NumPy arrays: a plain host
// pointer reads as "unified" (neither pinned nor device) here, and as the error with HIPEMU_STRICT. Since ROCm 6 it is
// "unregistered".
hipError_t describe_foreign(hipPointerAttribute_t* attributes, [[maybe_unused]] void* address) {
#if HIPEMU_ROCM == 5
  size_t at;
  if (config().strict || Space::get().find(address, &at)) return hipErrorInvalidValue;
  attributes->memoryType = hipMemoryTypeUnified;
  attributes->hostPointer = address;
#else
  attributes->memoryType = hipMemoryTypeUnregistered;
#endif
  attributes->device = hipInvalidDeviceId;
  return hipSuccess;
}

// Managed memory reads as host memory in ROCm 5 and has a type of its own since ROCm 6.
hipMemoryType type_of(Kind kind) {
  if (kind == Kind::device) return hipMemoryTypeDevice;
#if HIPEMU_ROCM >= 6
  if (kind == Kind::managed) return hipMemoryTypeManaged;
#endif
  return hipMemoryTypeHost;
}

}  // namespace

HIPEMU_EXPORT hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  HIPEMU_CALL(hipPointerGetAttributes);
  if (!attributes || !pointer) {
    if (rocm::MAJOR == 5) return errors::finish(hipErrorInvalidValue);
    return errors::finish(hipSuccess);  // as CUDA since 11, and HIP since 7.0
  }
  std::memset(attributes, 0, sizeof *attributes);
  Allocation found;
  size_t at;
  void* address = const_cast<void*>(pointer);
  if (!allocations::find(pointer, &found, &at)) return errors::finish(describe_foreign(attributes, address));
  attributes->memoryType = type_of(found.kind);
  attributes->device = found.device;
  attributes->devicePointer = address;
  attributes->hostPointer = found.kind == Kind::device ? nullptr : address;
  attributes->isManaged = found.kind == Kind::managed;
  attributes->allocationFlags = found.flags;
  return errors::finish(hipSuccess);
}
