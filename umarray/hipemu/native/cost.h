// What page movements would have cost on the card of the profile: a model, added up, never felt.
//
//   a fault          a fixed latency (the interrupt, the driver, the map update), plus the page at the rate of
//                    on-demand migration
//   a prefetch       a fixed cost a call, plus the pages at the rate of the bus
//   an eviction      the page at the rate of the bus
//
// Each constant has its source beside it in cost.cpp.
#pragma once

#include <cstddef>

namespace hipemu::cost {

enum Cause { fault, prefetch, eviction };

void faulted(int place);
void prefetch_call(int place);
void transfer(int from, int to, size_t bytes, Cause cause);

}  // namespace hipemu::cost
