// A stream's thread while it runs an operation: its signal stack, and what becomes of a crash inside a kernel.
//
// A fault that paging cannot serve, raised while a worker runs an operation, ends that operation and becomes the sticky
// hipErrorIllegalAddress, as on a device. The same fault on any other thread is the program's own crash.
#pragma once

#include <csetjmp>
#include <functional>
#include <string>

namespace hipemu::worker {

// First and last on each worker thread.
void prepare();
void finish();

// Runs an operation for `device`.
void run(int device, const std::function<void()>& work);

// From a signal handler on a worker thread: leave the operation that runs. Returns if none runs.
void abandon(int code, const void* address);
void abandon_text(int code, const char* what);

// From a kernel: ends it with an error, which becomes sticky.
[[noreturn]] void fail(int code, const std::string& why);

// The name of the kernel this worker runs, for messages; empty outside one.
std::string& running();

}  // namespace hipemu::worker
