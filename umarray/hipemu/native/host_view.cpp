#include "host_view.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "config.h"
#include "residency.h"
#include "space.h"

namespace hipemu::host_view {
namespace {

// The system's limit on mappings of a process (vm.max_map_count, 65,530 by default): neighbouring pages that are open
// to different places are mappings of their own.
constexpr const char* TOO_MANY =
    " (too many mappings: give a larger --page, make fewer or larger managed allocations, or raise vm.max_map_count)";

std::mutex workers_mutex;
std::map<int, int>& workers() {
  static auto* const by_thread = new std::map<int, int>;
  return *by_thread;
}

int device_of_thread(int thread) {
  const std::lock_guard<std::mutex> held(workers_mutex);
  const auto found = workers().find(thread);
  return found == workers().end() ? HOST : found->second;
}

[[noreturn]] void die(const char* what) {
  const bool full = errno == ENOMEM;
  std::fprintf(stderr, "hipemu: userfaultfd: %s: %s%s\n", what, std::strerror(errno), full ? TOO_MANY : "");
  std::abort();
}

uffdio_range range_of(size_t offset, size_t bytes) {
  return {reinterpret_cast<uintptr_t>(Space::get().at(HOST, offset)), bytes};
}

void serve(int file) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  for (;;) {
    uffd_msg message;
    const ssize_t n = read(file, &message, sizeof message);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
      pollfd wait{file, POLLIN, 0};
      poll(&wait, 1, -1);
      continue;
    }
    if (n != sizeof message) return;
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    size_t offset;
    if (!Space::get().find(reinterpret_cast<void*>(message.arg.pagefault.address), &offset)) continue;
    const bool write = message.arg.pagefault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP);
    const int device = device_of_thread(static_cast<int>(message.arg.pagefault.feat.ptid));
    if (device == HOST) {
      residency::fault(HOST, offset, write);
    } else {
      residency::borrow(device, offset, write);
    }
    // Whatever came of it, the thread tries again: a range that is gone by now gives it its SIGSEGV.
    uffdio_range page = range_of(offset & ~(config().page - 1), config().page);
    ioctl(file, UFFDIO_WAKE, &page);
  }
}

// The descriptor, or -1 where the kernel or its settings do not let us serve faults of system calls too.
int open_descriptor() {
  if (config().faults == "mprotect") return -1;
  int file = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
  if (file < 0) {
    const int control = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (control >= 0) {
      file = ioctl(control, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
      close(control);
    }
  }
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_THREAD_ID |
                 UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
  if (file >= 0 && ioctl(file, UFFDIO_API, &api) != 0) {
    close(file);
    file = -1;
  }
  if (file < 0) {
    if (config().faults == "userfaultfd") die("asked for, but not permitted or too old a kernel");
    return -1;
  }
  std::thread(serve, file).detach();
  return file;
}

int descriptor() {
  static const int file = open_descriptor();
  return file;
}

void protect(int file, size_t offset, size_t bytes, bool on) {
  uffdio_writeprotect request{};
  request.range = range_of(offset, bytes);
  request.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : UFFDIO_WRITEPROTECT_MODE_DONTWAKE;
  while (ioctl(file, UFFDIO_WRITEPROTECT, &request) != 0) {
    if (errno != EAGAIN) die("write protection");
  }
}

// Maps what is not mapped yet. The memory file must hold the page: touched through the back door first.
void map(int file, size_t offset, size_t bytes) {
  size_t at = offset;
  const size_t end = offset + bytes;
  for (size_t p = offset; p < end; p += 4096) static_cast<void>(*static_cast<volatile char*>(Space::get().backdoor(p)));
  while (at < end) {
    uffdio_continue request{};
    request.range = range_of(at, end - at);
    request.mode = UFFDIO_CONTINUE_MODE_DONTWAKE;
    if (ioctl(file, UFFDIO_CONTINUE, &request) == 0) return;
    if (request.mapped > 0) {
      at += static_cast<size_t>(request.mapped);
    } else if (errno == EEXIST) {
      at += 4096;
    } else if (errno == EFAULT) {
      // The page left the memory file between the touch and now: only a free does that, and frees hold the lock.
      die("mapping a page that is gone");
    } else if (errno != EAGAIN) {
      die("mapping");
    }
  }
}

}  // namespace

const char* way() { return descriptor() >= 0 ? "userfaultfd" : "mprotect"; }

void register_worker(int device) {
  const std::lock_guard<std::mutex> held(workers_mutex);
  workers()[static_cast<int>(gettid())] = device;
}

void forget_worker() {
  const std::lock_guard<std::mutex> held(workers_mutex);
  workers().erase(static_cast<int>(gettid()));
}

void begin(size_t offset, size_t bytes) {
  const int file = descriptor();
  if (file < 0) return;
  Space::get().protect(HOST, offset, bytes, PROT_READ | PROT_WRITE);
  uffdio_register request{};
  request.range = range_of(offset, bytes);
  request.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP;
  if (ioctl(file, UFFDIO_REGISTER, &request) != 0) die("registering a range");
}

void end(size_t offset, size_t bytes) {
  const int file = descriptor();
  if (file >= 0) {
    madvise(Space::get().at(HOST, offset), bytes, MADV_DONTNEED);
    uffdio_range range = range_of(offset, bytes);
    if (ioctl(file, UFFDIO_UNREGISTER, &range) != 0) die("unregistering a range");
  }
  Space::get().protect(HOST, offset, bytes, PROT_NONE);
}

void set(size_t offset, size_t bytes, Level level) {
  const int file = descriptor();
  if (file < 0) {
    const int protection = level == closed ? PROT_NONE : level == readable ? PROT_READ : PROT_READ | PROT_WRITE;
    Space::get().protect(HOST, offset, bytes, protection);
    return;
  }
  if (level == closed) {
    madvise(Space::get().at(HOST, offset), bytes, MADV_DONTNEED);
    return;
  }
  if (level == readable) {
    map(file, offset, bytes);
    protect(file, offset, bytes, true);
    return;
  }
  protect(file, offset, bytes, false);
  map(file, offset, bytes);
}

}  // namespace hipemu::host_view
