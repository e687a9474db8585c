// Threads of a block on one CPU thread.
//
// A fiber runs a loop that begins one thread after another. When a thread waits (block barrier or warp operation), its
// fiber is left, and another fiber goes on beginning threads. So a kernel without barriers needs one fiber, and one
// with them as many as there are threads: no analysis of the source, and no cost where nothing waits.
//
// When every live thread waits, someone is released: first those that wait at a warp operation, in each warp the ones
// at the earliest line (the active lanes of a diverged wavefront), and if there are none, all those at the block
// barrier. Threads that have returned count for nothing, as on the device. So there is no deadlock.
//
// Not modelled: blocks that wait for other blocks of the same grid, and threads that spin until another thread of the
// block does something without a barrier. Both would wait for ever.
#include "block.h"

#include <sys/mman.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include "errors.h"
#include "worker.h"

extern "C" {
__attribute__((visibility("default"))) __thread hipemu_block* hipemu_current
    __attribute__((tls_model("initial-exec"))) = nullptr;

// Saves the registers that a call preserves, stores the stack pointer, and goes on with another stack.
void hipemu_switch(void** save, void* load);
}

asm(R"(
.text
.globl hipemu_switch
.hidden hipemu_switch
.type hipemu_switch, @function
hipemu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size hipemu_switch, .-hipemu_switch
)");

namespace hipemu::block {
namespace {

constexpr size_t STACK = 256 << 10;
constexpr size_t GUARD = 4096;
constexpr unsigned MOST = 1024;  // threads of a block
constexpr unsigned LANES = 64;

enum class Waits : uint8_t { nothing, warp, block };

struct Fiber {
  char* stack = nullptr;
  void* pointer = nullptr;  // saved stack pointer
  hipemu_index thread{};
  uint32_t linear = 0;
  Waits waits = Waits::nothing;
  int site = 0;
};

struct Value {
  alignas(16) char bytes[16];
};

// What one worker needs to run blocks; made once, used for every kernel.
struct Runner {
  hipemu_block block{};
  const hipemu_kernel* kernel = nullptr;
  void** arguments = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers;  // by number of use in this block
  size_t used = 0;                             // fibers of this block
  Fiber* current = nullptr;
  void* scheduler = nullptr;  // its saved stack pointer
  std::vector<Fiber*> waiting;
  std::vector<char> shared;
  Value left[MOST], visible[MOST];
  uint64_t active[MOST / LANES]{};
  int votes[MOST]{};
};

thread_local Runner* runner = nullptr;

[[noreturn]] void body() {
  Runner* r = runner;
  r->kernel->run(r->arguments);
  r->current->waits = Waits::nothing;
  hipemu_switch(&r->current->pointer, r->scheduler);
  std::abort();  // a finished fiber is never resumed
}

Fiber* fresh(Runner* r) {
  if (r->used == r->fibers.size()) {
    auto fiber = std::make_unique<Fiber>();
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* memory = mmap(nullptr, STACK + GUARD, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    mprotect(memory, GUARD, PROT_NONE);  // an overflow is an illegal address, not another thread's data
    fiber->stack = static_cast<char*>(memory);
    r->fibers.push_back(std::move(fiber));
  }
  Fiber* fiber = r->fibers[r->used++].get();
  // As if `body` had been called: a return address, and the six registers that a switch restores.
  auto* top = reinterpret_cast<void**>(fiber->stack + GUARD + STACK) - 2;
  *top = reinterpret_cast<void*>(&body);
  top -= 6;
  std::memset(top, 0, 6 * sizeof(void*));
  fiber->pointer = top;
  fiber->waits = Waits::nothing;
  return fiber;
}

// Runs a fiber until it waits or has nothing left to do.
void resume(Runner* r, Fiber* fiber) {
  r->current = fiber;
  r->block.thread = fiber->thread;
  r->block.linear = fiber->linear;
  fiber->waits = Waits::nothing;
  hipemu_switch(&r->scheduler, fiber->pointer);
  if (fiber->waits != Waits::nothing) r->waiting.push_back(fiber);
}

void wait(Waits what, int site = 0) {
  Runner* r = runner;
  Fiber* fiber = r->current;
  fiber->thread = r->block.thread;
  fiber->linear = r->block.linear;
  fiber->waits = what;
  fiber->site = site;
  hipemu_switch(&fiber->pointer, r->scheduler);
}

// Picks whom to release out of those that wait; the others go on waiting.
std::vector<Fiber*> pick(Runner* r) {
  std::vector<Fiber*> chosen, rest;
  int earliest[MOST / LANES];
  std::fill(std::begin(earliest), std::end(earliest), INT_MAX);
  for (const Fiber* fiber : r->waiting) {
    int& site = earliest[fiber->linear / LANES];
    if (fiber->waits == Waits::warp && fiber->site < site) site = fiber->site;
  }
  for (Fiber* fiber : r->waiting) {
    const bool now = fiber->waits == Waits::warp && fiber->site == earliest[fiber->linear / LANES];
    (now ? chosen : rest).push_back(fiber);
  }
  if (chosen.empty()) chosen.swap(rest);
  std::memset(r->active, 0, sizeof r->active);
  for (const Fiber* fiber : chosen) {
    if (fiber->waits != Waits::warp) continue;
    r->active[fiber->linear / LANES] |= uint64_t{1} << (fiber->linear % LANES);
    r->visible[fiber->linear] = r->left[fiber->linear];
  }
  r->waiting.swap(rest);
  return chosen;
}

void run_block(Runner* r) {
  r->block.started = 0;
  r->block.next = {0, 0, 0};
  r->used = 0;
  r->waiting.clear();
  while (r->block.started < r->block.total) resume(r, fresh(r));
  while (!r->waiting.empty()) {
    for (Fiber* fiber : pick(r)) resume(r, fiber);
  }
}

}  // namespace

void run_grid(const hipemu_kernel& kernel, dim3 grid, dim3 threads, size_t shared, void** arguments) {
  if (!runner) runner = new Runner;
  Runner* r = runner;
  if (r->shared.size() < shared + 64) r->shared.resize(shared + 64);
  const auto address = (reinterpret_cast<uintptr_t>(r->shared.data()) + 63) / 64 * 64;
  r->kernel = &kernel;
  r->arguments = arguments;
  r->block.dynamic_shared = reinterpret_cast<void*>(address);
  if (kernel.flat) grid = threads = {1, 1, 1};
  r->block.grid_dim = {grid.x, grid.y, grid.z};
  r->block.block_dim = {threads.x, threads.y, threads.z};
  r->block.total = threads.x * threads.y * threads.z;
  hipemu_current = &r->block;
  for (uint32_t z = 0; z < grid.z; ++z) {
    for (uint32_t y = 0; y < grid.y; ++y) {
      for (uint32_t x = 0; x < grid.x; ++x) {
        r->block.block = {x, y, z};
        run_block(r);
      }
    }
  }
}

}  // namespace hipemu::block

using namespace hipemu;
using namespace hipemu::block;

HIPEMU_EXPORT void hipemu_barrier() { wait(Waits::block); }

HIPEMU_EXPORT void hipemu_warp_leave(const void* value, unsigned size, int site) {
  if (size) std::memcpy(runner->left[runner->block.linear].bytes, value, size);
  wait(Waits::warp, site);
}

HIPEMU_EXPORT const void* hipemu_warp_value(unsigned lane) {
  return runner->visible[(runner->block.linear / LANES * LANES + lane) % MOST].bytes;
}

HIPEMU_EXPORT uint64_t hipemu_warp_active() { return runner->active[runner->block.linear / LANES]; }

HIPEMU_EXPORT int hipemu_barrier_reduce(int how, int value) {
  Runner* r = runner;
  r->votes[r->block.linear] = value != 0 ? 1 : -1;
  wait(Waits::block);
  int count = 0, present = 0;
  for (uint32_t i = 0; i < r->block.total; ++i) {
    count += r->votes[i] == 1;
    present += r->votes[i] != 0;
  }
  wait(Waits::block);
  r->votes[r->block.linear] = 0;
  return how == 0 ? count : how == 1 ? count == present : count != 0;
}

HIPEMU_EXPORT void hipemu_assert_failed(const char* what, const char* file, int line) {
  worker::fail(hipErrorAssert, std::string("assertion `") + what + "` failed at " + file + ":" + std::to_string(line));
}

HIPEMU_EXPORT void hipemu_trap(const char* what) { worker::fail(hipErrorLaunchFailure, what); }
