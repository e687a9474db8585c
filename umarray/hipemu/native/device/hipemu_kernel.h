// What the runtime library and a compiled kernel share: the state of the block that a worker runs, and how a kernel
// describes itself.
//
// The threads of a block run one after another in a loop, on one fiber. A thread that waits (barrier, warp operation)
// suspends its fiber, and the loop goes on with the next thread on another. See block.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

struct hipemu_index {
  uint32_t x, y, z;
};

struct hipemu_block {
  hipemu_index thread;  // threadIdx of the thread that runs
  hipemu_index block;   // blockIdx
  hipemu_index block_dim;
  hipemu_index grid_dim;
  uint32_t linear;   // number of that thread in its block
  uint32_t started;  // threads begun so far
  uint32_t total;    // threads of the block
  hipemu_index next;  // index of the thread that begins next
  void* dynamic_shared;
};

// One kernel. `run` begins threads of the current block until none is left.
struct hipemu_kernel {
  void (*run)(void** arguments);
  const size_t* sizes;
  int count;
  int flat;       // one CUPY_FOR loop and nothing else: one thread does the work of the grid
  void* address;  // of a variable, for name expressions that name one; then `run` is null
  size_t bytes;
};

extern "C" {
extern __thread hipemu_block* hipemu_current __attribute__((tls_model("initial-exec")));

// Wait for all live threads of the block; for the live threads of the warp, leaving a value for them to read.
// `site` is the line of the source: diverged lanes are told apart by it.
void hipemu_barrier();
void hipemu_warp_leave(const void* value, unsigned size, int site);
const void* hipemu_warp_value(unsigned lane);
uint64_t hipemu_warp_active();
// Wait for the block, and reduce what its threads passed: 0 count of nonzero, 1 and, 2 or.
int hipemu_barrier_reduce(int how, int value);
[[noreturn]] void hipemu_assert_failed(const char* what, const char* file, int line);
[[noreturn]] void hipemu_trap(const char* what);
}

// Begins the next thread of the block; false when all have begun.
inline bool hipemu_begin(hipemu_block* b) {
  if (b->started == b->total) return false;
  b->linear = b->started++;
  b->thread = b->next;
  if (++b->next.x == b->block_dim.x) {
    b->next.x = 0;
    if (++b->next.y == b->block_dim.y) {
      b->next.y = 0;
      ++b->next.z;
    }
  }
  return true;
}
