// Runs the threads of a block on this worker, with barriers. See block.cpp.
#pragma once

#include "abi.h"
#include "device/hipemu_kernel.h"

namespace hipemu::block {

// Runs every block of a grid, one after another.
void run_grid(const hipemu_kernel& kernel, dim3 grid, dim3 threads, size_t shared, void** arguments);

}  // namespace hipemu::block
