// The wheel's thrust functions (sort, argsort, lexsort), in place of its precompiled kernels.
//
// Same meaning as CuPy's: stable, along the last axis, NaN last, complex numbers by real part first. argsort sorts the
// data as well as the indices, as thrust's sort by key does.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "runtime.h"
#include "types.h"

using hipemu::dispatch;
using hipemu::less;

namespace {

struct Rows {
  size_t count = 1, length = 0;
  explicit Rows(const std::vector<ptrdiff_t>& shape) {
    for (size_t i = 0; i + 1 < shape.size(); ++i) count *= static_cast<size_t>(shape[i]);
    if (!shape.empty()) length = static_cast<size_t>(shape.back());
  }
};

}  // namespace

#define EXPORT __attribute__((visibility("default")))

EXPORT void thrust_sort(int type, void* data, size_t*, const std::vector<ptrdiff_t>& shape, intptr_t stream, void*) {
  const Rows rows(shape);
  dispatch(type, [&](auto one) {
    using T = decltype(one);
    hipemu::enqueue(stream, "thrust_sort", [=] {
      T* first = hipemu::shift_here(static_cast<T*>(data));
      for (size_t r = 0; r < rows.count; ++r, first += rows.length) {
        std::stable_sort(first, first + rows.length, [](const T& a, const T& b) { return less(a, b); });
      }
    });
  });
}

EXPORT void thrust_argsort(int type, size_t* index, void* data, void*, const std::vector<ptrdiff_t>& shape,
                           intptr_t stream, void*) {
  const Rows rows(shape);
  dispatch(type, [&](auto one) {
    using T = decltype(one);
    hipemu::enqueue(stream, "thrust_argsort", [=] {
      T* values = hipemu::shift_here(static_cast<T*>(data));
      size_t* order = hipemu::shift_here(index);
      std::vector<T> sorted(rows.length);
      for (size_t r = 0; r < rows.count; ++r, values += rows.length, order += rows.length) {
        std::iota(order, order + rows.length, size_t{0});
        std::stable_sort(order, order + rows.length, [=](size_t a, size_t b) { return less(values[a], values[b]); });
        for (size_t i = 0; i < rows.length; ++i) sorted[i] = values[order[i]];
        std::copy(sorted.begin(), sorted.end(), values);
      }
    });
  });
}

EXPORT void thrust_lexsort(int type, size_t* index, void* keys, size_t k, size_t n, intptr_t stream, void*) {
  dispatch(type, [&](auto one) {
    using T = decltype(one);
    hipemu::enqueue(stream, "thrust_lexsort", [=] {
      size_t* order = hipemu::shift_here(index);
      const T* all = hipemu::shift_here(static_cast<T*>(keys));
      std::iota(order, order + n, size_t{0});
      for (size_t i = 0; i < k; ++i) {
        const T* key = all + i * n;
        std::stable_sort(order, order + n, [=](size_t a, size_t b) { return less(key[a], key[b]); });
      }
    });
  });
}
