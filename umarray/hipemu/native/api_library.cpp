// What the emulated libraries (hipBLAS, hipRAND, ...) need of the runtime: queue host code on a stream, reach memory as
// the stream's device does.
#include <memory>

#include "abi.h"
#include "allocations.h"
#include "calls.h"
#include "device.h"
#include "errors.h"
#include "libraries/work.h"
#include "space.h"
#include "stream.h"
#include "worker.h"

using namespace hipemu;

HIPEMU_EXPORT int hipemu_enqueue(void* handle, const char* name, void (*work)(void*), void (*drop)(void*), void* data,
                                 int wait) {
  const StreamPtr stream = streams::resolve(handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  const std::shared_ptr<void> owned(data, drop);
  const Mark done = streams::submit(stream, [=] {
    worker::running() = name;
    work(owned.get());
  });
  if (wait) done.wait();
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT void* hipemu_shift(const void* pointer, void* handle) {
  const StreamPtr stream = streams::resolve(handle);
  return stream ? Space::get().shifted(const_cast<void*>(pointer), stream->device) : const_cast<void*>(pointer);
}

// On a worker: the same for the device it works for, for pointers that are read from memory.
HIPEMU_EXPORT void* hipemu_shift_here(const void* pointer) {
  const int device = streams::worker_device();
  return device == HOST ? const_cast<void*>(pointer) : Space::get().shifted(const_cast<void*>(pointer), device);
}
