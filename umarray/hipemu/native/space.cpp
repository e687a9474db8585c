#include "space.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "config.h"

namespace hipemu {
namespace {

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "hipemu: %s: %s\n", what, std::strerror(errno));
  std::abort();
}

}  // namespace

Space& Space::get() {
  static Space* const space = new Space;
  return *space;
}

Space::Space() {
  size_ = config().reserve;
  views_count_ = config().devices + 1;
  file_ = memfd_create("hipemu", MFD_CLOEXEC);
  if (file_ < 0) die("memfd_create");
  if (ftruncate(file_, static_cast<off_t>(size_)) != 0) die("ftruncate of the memory file");
  const size_t page = config().page;
  const auto map = [&](int protection) {
    // As on a card, a page lies at a multiple of its size, so that who aligns an address meets the page's edge.
    void* room = mmap(nullptr, size_ + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) die("mmap of the memory file (is the address space limited by ulimit -v?)");
    const size_t before = -reinterpret_cast<uintptr_t>(room) & (page - 1);
    void* address = static_cast<char*>(room) + before;
    if (mmap(address, size_, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_, 0) == MAP_FAILED) {
      die("mmap of the memory file");
    }
    if (before) munmap(room, before);
    munmap(static_cast<char*>(address) + size_, page - before);
    // A child that is forked without exec would share these bytes: real device memory is not inherited either.
    madvise(address, size_, MADV_DONTFORK);
    madvise(address, size_, MADV_DONTDUMP);
    return static_cast<char*>(address);
  };
  for (int i = 0; i < views_count_; ++i) views_[i] = map(PROT_NONE);
  backdoor_ = map(PROT_READ | PROT_WRITE);
  free_[0] = size_;
}

bool Space::find(const void* pointer, size_t* offset, int* place) const {
  const char* address = static_cast<const char*>(pointer);
  for (int i = 0; i < views_count_; ++i) {
    if (address >= views_[i] && address < views_[i] + size_) {
      *offset = static_cast<size_t>(address - views_[i]);
      if (place) *place = i - 1;
      return true;
    }
  }
  return false;
}

void* Space::shifted(void* pointer, int place) const {
  size_t offset;
  return find(pointer, &offset) ? at(place, offset) : pointer;
}

void Space::protect(int place, size_t offset, size_t bytes, int protection) const {
  if (mprotect(at(place, offset), bytes, protection) != 0) {
    die("mprotect (too many mappings? see vm.max_map_count, or take a larger --page)");
  }
}

bool Space::carve(size_t bytes, size_t* offset) {
  const std::lock_guard<std::mutex> held(mutex_);
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    if (hole->second < bytes) continue;
    const auto [start, length] = *hole;
    free_.erase(hole);
    if (length > bytes) free_[start + bytes] = length - bytes;
    *offset = start;
    return true;
  }
  return false;
}

void Space::give(size_t offset, size_t bytes) {
  if (fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(bytes)) != 0) {
    die("fallocate(PUNCH_HOLE)");
  }
  const std::lock_guard<std::mutex> held(mutex_);
  auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      bytes += previous->second;
      free_.erase(previous);
    }
  }
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    free_.erase(next);
  }
  free_[offset] = bytes;
}

}  // namespace hipemu
