// Opens and closes pages of the host's view of managed memory, so that a touch of a closed one is noticed.
//
// Two ways. With userfaultfd a page is closed by unmapping it (the bytes stay in the memory file), and a touch wakes a
// thread that maps it again: system calls on closed pages work, and count as touches. Without it (it needs a privilege
// or a setting) pages are closed with mprotect, and a touch is a SIGSEGV: then a system call that is handed a closed
// page fails with EFAULT (file.readinto, ndarray.tofile), as the process itself never touches it.
#pragma once

#include <cstddef>

namespace hipemu::host_view {

enum Level { closed = 0, readable = 1, writable = 2 };

// Which way is in use: "userfaultfd" or "mprotect".
const char* way();

// Begin and end watching a range. It begins closed; at its end it is closed for good.
void begin(size_t offset, size_t bytes);
void end(size_t offset, size_t bytes);

void set(size_t offset, size_t bytes, Level level);

// For messages of a thread that is waiting in a fault: a worker's thread number tells which device it works for. The
// system gives numbers out again, so a worker says when it ends.
void register_worker(int device);
void forget_worker();

}  // namespace hipemu::host_view
