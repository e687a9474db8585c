#include "copy.h"

#include <cstring>
#include <memory>
#include <vector>

#include "allocations.h"
#include "config.h"
#include "errors.h"
#include "residency.h"
#include "space.h"

namespace hipemu::copy {
namespace {

// One end of a copy, and the address by which the worker reaches it.
//
// Device and pinned memory never move and are reached by the back door. Migrating managed memory is touched as the
// copy's kind says: as the device (its pages migrate there, as under a blit kernel), as the host, or, with
// hipMemcpyDefault, where it lies. So a kind that does not fit where the pages are costs migrations, as documented.
struct End {
  char* address = nullptr;
  bool pageable = false;
  bool in_place = false;  // migrating memory, to be touched where it lies
  size_t offset = 0;

  // On the worker, before the bytes are touched.
  void settle(size_t bytes, int device) const {
    if (in_place) residency::populate(offset, bytes, device);
  }
};

enum class Side { host, device, any };

hipError_t end_of(const void* pointer, size_t bytes, Side side, int device, End* end) {
  Space& space = Space::get();
  size_t at;
  if (!space.find(pointer, &at)) {
    if (!pointer) return hipErrorInvalidValue;
    end->address = static_cast<char*>(const_cast<void*>(pointer));
    end->pageable = true;
    return hipSuccess;
  }
  Allocation allocation;
  if (!allocations::find(pointer, &allocation, &at) || !allocation.holds(at, bytes)) return hipErrorInvalidValue;
  if (allocation.kind == Kind::managed && config().xnack && side != Side::any) {
    end->address = space.at(side == Side::host ? HOST : device, at);
  } else {
    end->in_place = allocation.kind == Kind::managed && config().xnack;
    end->offset = at;
    end->address = space.backdoor(at);
  }
  return hipSuccess;
}

}  // namespace

hipError_t copy(void* to, const void* from, size_t bytes, hipMemcpyKind kind, const StreamPtr& stream, bool wait) {
  if (kind < hipMemcpyHostToHost || kind > hipMemcpyDefault) return hipErrorInvalidMemcpyDirection;
  if (bytes == 0) return hipSuccess;
  const bool any = kind == hipMemcpyDefault;
  const bool to_host = kind == hipMemcpyDeviceToHost || kind == hipMemcpyHostToHost;
  const bool from_host = kind == hipMemcpyHostToDevice || kind == hipMemcpyHostToHost;
  End target, source;
  if (const hipError_t bad = end_of(to, bytes, any ? Side::any : to_host ? Side::host : Side::device, stream->device,
                                    &target)) {
    return bad;
  }
  if (const hipError_t bad = end_of(from, bytes, any ? Side::any : from_host ? Side::host : Side::device,
                                    stream->device, &source)) {
    return bad;
  }
  std::function<void()> work;
  if (source.pageable && !wait) {
    auto staged = std::make_shared<std::vector<char>>(source.address, source.address + bytes);
    work = [staged, target, bytes, device = stream->device] {
      target.settle(bytes, device);
      std::memcpy(target.address, staged->data(), bytes);
    };
  } else {
    work = [source, target, bytes, device = stream->device] {
      source.settle(bytes, device);
      target.settle(bytes, device);
      std::memmove(target.address, source.address, bytes);
    };
  }
  const Mark done = streams::submit(stream, std::move(work));
  if (wait || target.pageable) done.wait();
  return hipSuccess;
}

hipError_t fill(void* to, int value, size_t bytes, const StreamPtr& stream, bool wait) {
  if (bytes == 0) return hipSuccess;
  End target;
  if (const hipError_t bad = end_of(to, bytes, Side::device, stream->device, &target)) return bad;
  if (target.pageable) return hipErrorInvalidValue;
  const Mark done = streams::submit(stream, [=] { std::memset(target.address, value, bytes); });
  if (wait) done.wait();
  return hipSuccess;
}

}  // namespace hipemu::copy
