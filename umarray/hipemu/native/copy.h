// Copies and fills, as the runtime's calls ask for them.
#pragma once

#include <cstddef>

#include "stream.h"

namespace hipemu::copy {

// With `wait`, returns when the bytes are there. Without, follows the runtime's rule: pageable host memory is read
// before the call returns, and a copy into it is waited for; everything else is only queued.
hipError_t copy(void* to, const void* from, size_t bytes, hipMemcpyKind kind, const StreamPtr& stream, bool wait);
hipError_t fill(void* to, int value, size_t bytes, const StreamPtr& stream, bool wait);

}  // namespace hipemu::copy
