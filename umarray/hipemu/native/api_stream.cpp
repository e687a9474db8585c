// hipStream*, hipEvent*, host callbacks.
#include <algorithm>

#include "abi.h"
#include "calls.h"
#include "device.h"
#include "errors.h"
#include "event.h"
#include "faults.h"
#include "stream.h"

using namespace hipemu;

HIPEMU_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t* handle, unsigned flags) {
  HIPEMU_CALL(hipStreamCreateWithFlags);
  if (!handle || (flags & ~hipStreamNonBlocking)) return errors::finish(hipErrorInvalidValue);
  *handle = streams::handle_of(streams::create(device::current(), flags));
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipStreamCreate(hipStream_t* handle) { return hipStreamCreateWithFlags(handle, 0); }

// From the lowest to the highest. They are kept and told; every stream has a thread of its own, so nothing is preferred.
constexpr int LEAST = 1, GREATEST = -1;

HIPEMU_EXPORT hipError_t hipStreamCreateWithPriority(hipStream_t* handle, unsigned flags, int priority) {
  HIPEMU_CALL(hipStreamCreateWithPriority);
  if (!handle || (flags & ~hipStreamNonBlocking)) return errors::finish(hipErrorInvalidValue);
  const StreamPtr stream = streams::create(device::current(), flags);
  stream->priority = std::clamp(priority, GREATEST, LEAST);
  *handle = streams::handle_of(stream);
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  HIPEMU_CALL(hipDeviceGetStreamPriorityRange);
  if (least) *least = LEAST;
  if (greatest) *greatest = GREATEST;
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipStreamDestroy(hipStream_t handle) {
  HIPEMU_CALL(hipStreamDestroy);
  const hipError_t result = handle ? streams::destroy(handle) : hipErrorInvalidHandle;
  return result ? errors::finish(result) : hipSuccess;
}

HIPEMU_EXPORT hipError_t hipStreamSynchronize(hipStream_t handle) {
  HIPEMU_CALL(hipStreamSynchronize);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  streams::now(stream).wait();
  faults::watch();  // the program reads results next
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipStreamQuery(hipStream_t handle) {
  HIPEMU_CALL(hipStreamQuery);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  const bool done = streams::now(stream).done();
  if (errors::sticky()) return errors::finish(hipSuccess);
  return done ? hipSuccess : hipErrorNotReady;
}

HIPEMU_EXPORT hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event, unsigned) {
  HIPEMU_CALL(hipStreamWaitEvent);
  const StreamPtr stream = streams::resolve(handle);
  std::shared_ptr<Recorded> last;
  if (!stream || !events::recorded(event, &last)) return errors::finish(hipErrorInvalidHandle);
  if (last && !last->mark.done()) streams::submit_host(stream, [] {}, {last->mark});
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipStreamGetFlags(hipStream_t handle, unsigned* flags) {
  HIPEMU_CALL(hipStreamGetFlags);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  if (!flags) return errors::finish(hipErrorInvalidValue);
  *flags = stream->flags;
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipStreamGetPriority(hipStream_t handle, int* priority) {
  HIPEMU_CALL(hipStreamGetPriority);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  if (!priority) return errors::finish(hipErrorInvalidValue);
  *priority = stream->priority;
  return errors::finish(hipSuccess);
}

// The device of a stream; its callers (rocPRIM) know no error here.
HIPEMU_EXPORT int hipGetStreamDeviceId(hipStream_t handle) {
  HIPEMU_CALL(hipGetStreamDeviceId);
  const StreamPtr stream = streams::resolve(handle);
  return stream ? stream->device : hipInvalidDeviceId;
}

HIPEMU_EXPORT hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t callback, void* data,
                                              unsigned flags) {
  HIPEMU_CALL(hipStreamAddCallback);
  if (!callback || flags) return errors::finish(hipErrorInvalidValue);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  streams::submit_host(stream, [=] { callback(handle, errors::sticky(), data); });
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function, void* data) {
  HIPEMU_CALL(hipLaunchHostFunc);
  if (!function) return errors::finish(hipErrorInvalidValue);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  streams::submit_host(stream, [=] { function(data); });
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  HIPEMU_CALL(hipEventCreateWithFlags);
  if (!event) return errors::finish(hipErrorInvalidValue);
  return errors::finish(events::create(flags, event));
}

HIPEMU_EXPORT hipError_t hipEventCreate(hipEvent_t* event) { return hipEventCreateWithFlags(event, 0); }

HIPEMU_EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  HIPEMU_CALL(hipEventDestroy);
  const hipError_t result = events::destroy(event);
  return result ? errors::finish(result) : hipSuccess;
}

HIPEMU_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t handle) {
  HIPEMU_CALL(hipEventRecord);
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  return errors::finish(events::record(event, stream));
}

HIPEMU_EXPORT hipError_t hipEventQuery(hipEvent_t event) {
  HIPEMU_CALL(hipEventQuery);
  std::shared_ptr<Recorded> last;
  if (!events::recorded(event, &last)) return errors::finish(hipErrorInvalidHandle);
  const bool done = !last || last->mark.done();
  if (errors::sticky()) return errors::finish(hipSuccess);
  return done ? hipSuccess : hipErrorNotReady;
}

HIPEMU_EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
  HIPEMU_CALL(hipEventSynchronize);
  std::shared_ptr<Recorded> last;
  if (!events::recorded(event, &last)) return errors::finish(hipErrorInvalidHandle);
  if (last) last->mark.wait();
  faults::watch();
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  HIPEMU_CALL(hipEventElapsedTime);
  std::shared_ptr<Recorded> first, second;
  unsigned flags_first = 0, flags_second = 0;
  if (!milliseconds) return errors::finish(hipErrorInvalidValue);
  if (!events::recorded(start, &first, &flags_first) || !events::recorded(stop, &second, &flags_second) || !first ||
      !second || ((flags_first | flags_second) & hipEventDisableTiming)) {
    return errors::finish(hipErrorInvalidHandle);
  }
  if (!first->mark.done() || !second->mark.done()) return errors::finish(hipErrorNotReady);
  *milliseconds = static_cast<float>(static_cast<double>(second->nanoseconds - first->nanoseconds) * 1e-6);
  return errors::finish(hipSuccess);
}
