#include "cost.h"

#include "config.h"
#include "counters.h"
#include "space.h"

namespace hipemu::cost {
namespace {

struct Card {
  const char* name;
  double fault_us;        // device fault, beside the bytes
  double host_fault_us;   // host fault on a page of a device
  double call_us;         // prefetch call, before a byte moves
  double demand_gb;       // migration to a device by faults, GB/s
  double bus_gb;          // prefetch to a device
  double back_gb;         // prefetch to the host, eviction
  double link_gb;         // device to device
  double demand_back_gb;  // migration to the host by faults
  double batch_us;        // each run of pages that a prefetch moves, up to 2 MiB
};

// Where the figures come from, card by card. "Guess" means that nobody here has measured it.
//
// mi210, mi250x   bus, back: PCIe 4.0 x16, 32 GB/s (AMD's data sheets of the MI210 and MI250X), of which copies from
//                 pinned memory reach four fifths (C. Pearson, arXiv:2302.14827, measures links of an MI250X so).
//                 link: one Infinity Fabric link, 25 GT/s of 16 bits, 50 GB/s each way (AMD CDNA 2 white paper).
//                 demand: guess: a tenth of the bus, as on-demand migration under XNACK is said to be.
//                 fault, host_fault: guess: tens of microseconds; a GPU fault is an interrupt, a workqueue, an mm walk
//                 and a TLB flush (amdkfd, svm_range_restore_pages). call, batch: guess: like the test card's. A batch
//                 is a range there, of 2 MiB by default (amdgpu's svm_default_granularity).
// mi300x          bus, back: PCIe 5.0 x16, 64 GB/s (AMD's data sheet), four fifths of it. link: 128 GB/s a link both
//                 ways together (AMD CDNA 3 white paper), 64 each way. The rest: guesses, as above.
// mi300a          One memory for both (AMD CDNA 3 white paper): nothing migrates. A call still costs something: guess.
// h200            Measured on the test card, an NVIDIA H200 (CUDA 13): 256 MiB first touched on demand in 31 ms, 8.6
//                 GB/s; prefetched in 5.3 ms, 50 GB/s; prefetched back at 18 GB/s; host writes to pages on the device
//                 at 4.5 GB/s; a prefetch call takes 70 us before a byte moves; a pinned copy runs at 55 GB/s; CUPTI
//                 shows a prefetch in pieces of 2 MiB. What one fault costs cannot be told from its bytes there: 1 us
//                 is taken as its latency, and the rates are what is left of the totals at 64 KiB a fault: 65,536 B /
//                 8.6 GB/s - 1 us = 65,536 B / 9.9 GB/s, and 4.83 for 4.5. So with a batch: 5.3 ms less the call, at
//                 the bus's 55 GB/s, leave 2.7 us for each of 128 pieces; and 18.4 for 18.
//                 link: NVLink 4, 450 GB/s each way (NVIDIA's data sheet).
constexpr Card CARDS[] = {
    {"mi210", 20, 25, 50, 2.8, 26, 26, 50, 2.8, 3},
    {"mi250x", 20, 25, 50, 2.8, 26, 26, 50, 2.8, 3},
    {"mi300x", 20, 25, 50, 5.0, 52, 52, 64, 5.0, 3},
    {"mi300a", 0, 0, 10, 1000, 1000, 1000, 64, 1000, 0},
    {"h200", 1, 1, 70, 9.9, 55, 18.4, 450, 4.83, 2.7},
};

const Card& card() {
  static const Card& chosen = []() -> const Card& {
    for (const Card& c : CARDS) {
      if (config().profile == c.name) return c;
    }
    return CARDS[0];  // device::profile() has refused any other name
  }();
  return chosen;
}

constexpr size_t BATCH_BYTES = size_t{2} << 20;

void charge(int place, double nanoseconds) {
  counters::add(place, counters::modelled_nanoseconds, static_cast<uint64_t>(nanoseconds + 0.5));
}

}  // namespace

void figures(double out[FIGURES]) {
  const Card& c = card();
  const double all[FIGURES] = {c.fault_us * 1e-6, c.host_fault_us * 1e-6, c.call_us * 1e-6, c.demand_gb * 1e9,
                               c.bus_gb * 1e9,    c.back_gb * 1e9,        c.link_gb * 1e9,  c.demand_back_gb * 1e9,
                               c.batch_us * 1e-6};
  for (int i = 0; i < FIGURES; ++i) out[i] = all[i];
}

void faulted(int place) { charge(place, 1000 * (place == HOST ? card().host_fault_us : card().fault_us)); }

void prefetch_call(int place) { charge(place, 1000 * card().call_us); }

void batch(int place) { charge(place, 1000 * card().batch_us); }

void Batches::moved(size_t page, int place) {
  if (page != next_ || page >= end_) {
    batch(place);
    const size_t most = BATCH_BYTES / config().page;
    end_ = page + (most ? most : 1);
  }
  next_ = page + 1;
}

void transfer(int from, int to, size_t bytes, Cause cause) {
  const Card& c = card();
  double rate = to == HOST ? c.back_gb : from == HOST ? c.bus_gb : c.link_gb;
  if (cause == fault) {
    const double demand = to == HOST ? c.demand_back_gb : c.demand_gb;
    if (demand < rate) rate = demand;
  }
  charge(cause == eviction ? from : to, static_cast<double>(bytes) / rate);  // bytes over GB/s are nanoseconds
}

}  // namespace hipemu::cost
