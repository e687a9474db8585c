// What page movements would have cost on the card of the profile: a model, added up, never felt.
//
//   a fault          a fixed latency (the interrupt, the driver, the map update), plus the page at the rate of
//                    on-demand migration
//   a prefetch       a fixed cost a call and one for each batch (a run of neighbouring pages, 2 MiB at most), plus the
//                    pages at the rate of the bus
//   an eviction      the page at the rate of the bus
//
// Each constant has its source beside it in cost.cpp.
#pragma once

#include <cstddef>

namespace hipemu::cost {

enum Cause { fault, prefetch, eviction };

// Seconds, and bytes a second, in the order of cost.cpp's Card.
constexpr int FIGURES = 9;
void figures(double out[FIGURES]);

void faulted(int place);
void prefetch_call(int place);
void batch(int place);
void transfer(int from, int to, size_t bytes, Cause cause);

// Tells batches apart in one prefetch; page = offset / config().page, in rising order.
class Batches {
 public:
  void moved(size_t page, int place);

 private:
  size_t next_ = ~size_t{0}, end_ = 0;
};

}  // namespace hipemu::cost
