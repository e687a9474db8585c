// The address space: one memory file, mapped once for the host, once for each device, and once for the emulator.
//
//   view HOST       what the program sees: every pointer that leaves this library is an address in this view
//   view of dev d   what kernels and copies of device d use: a launch shifts its pointers into this view
//   backdoor        always readable and writable: the emulator's own way to the bytes, never seen by a program
//
// All views show the same bytes, so data is right whatever the paging does; what differs is which pages of which view
// are open. A touch of a closed page is a fault, and the view tells whose it was: that is how host and device
// accesses are told apart while both run. Plain device memory is closed in the host view for good, so that a host
// dereference fails as it does on a discrete GPU.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace hipemu {

constexpr int HOST = -1;

class Space {
 public:
  static Space& get();

  size_t size() const { return size_; }
  char* base(int place) const { return views_[place + 1]; }
  char* at(int place, size_t offset) const { return base(place) + offset; }
  char* backdoor(size_t offset) const { return backdoor_ + offset; }

  // Finds `pointer` in any view. Device views count too: a kernel may have stored a shifted pointer.
  bool find(const void* pointer, size_t* offset, int* place = nullptr) const;

  // The same location in the view of `place`, or the pointer itself where it is not ours.
  void* shifted(void* pointer, int place) const;

  void protect(int place, size_t offset, size_t bytes, int protection) const;

  // Address space in whole pages; false when none is left. `give` returns the memory behind it to the system.
  bool carve(size_t bytes, size_t* offset);
  void give(size_t offset, size_t bytes);

 private:
  Space();

  size_t size_ = 0;
  int views_count_ = 0;
  int file_ = -1;
  char* views_[9] = {};
  char* backdoor_ = nullptr;
  std::mutex mutex_;
  std::map<size_t, size_t> free_;  // offset -> bytes, neighbours merged
};

}  // namespace hipemu
