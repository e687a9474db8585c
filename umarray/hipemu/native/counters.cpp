#include "counters.h"

namespace hipemu::counters {

std::atomic<uint64_t> values[ROWS][COUNT];

}  // namespace hipemu::counters
