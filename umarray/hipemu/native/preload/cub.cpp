// The wheel's cub functions (CUPY_ACCELERATORS=cub: reductions, scans, histograms), in place of its precompiled
// kernels.
//
// Same meaning as CuPy's (cupy/cuda/cupy_cub.cu): NaN wins a minimum or maximum, the first of equals wins an argmin or
// argmax. Sums are kept in a wider type and rounded once, so they may be nearer to the true value than a card's.
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime.h"
#include "types.h"

struct ihipStream_t;

using hipemu::dispatch;
using hipemu::Half;
using hipemu::is_nan;
using hipemu::plain;

namespace {

enum Operation { SUM, MIN, MAX, ARGMIN, ARGMAX, CUMSUM, CUMPROD, PROD };

// What a sum of T is kept in, and a product.
template <class T>
struct Wide {
  using sum = T;
  using product = T;
};
template <>
struct Wide<float> {
  using sum = double;
  using product = float;
};
template <>
struct Wide<Half> {
  using sum = double;
  using product = float;
};
template <>
struct Wide<std::complex<float>> {
  using sum = std::complex<double>;
  using product = std::complex<float>;
};

template <class T, class W>
T narrow(const W& v) {
  if constexpr (std::is_same_v<T, Half>) {
    return Half{hipemu_double_to_half(v)};
  } else {
    return static_cast<T>(v);
  }
}

template <class T>
T times(T a, T b) {
  return static_cast<T>(a * b);
}
// As on a card: C++'s own product would make infinities of what is not a number.
template <class T>
std::complex<T> times(const std::complex<T>& a, const std::complex<T>& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Calls `each(running value)` after every element, with the sum or the product up to there.
template <class T, class F>
void accumulate(const T* x, size_t count, bool sum, F each) {
  if (sum) {
    using W = typename Wide<T>::sum;
    W all(0);
    for (size_t i = 0; i < count; ++i) each(i, all = static_cast<W>(all + W(plain(x[i]))));
  } else {
    using W = typename Wide<T>::product;
    W all(1);
    for (size_t i = 0; i < count; ++i) each(i, all = times(all, W(plain(x[i]))));
  }
}

template <class T>
T total(const T* x, size_t count, bool sum) {
  T result = narrow<T>(typename Wide<T>::product(sum ? 0 : 1));
  accumulate(x, count, sum, [&](size_t i, const auto& v) {
    if (i + 1 == count) result = narrow<T>(v);
  });
  return result;
}

// Where the least or the greatest is.
template <class T>
size_t best(const T* x, size_t count, bool greatest) {
  size_t at = 0;
  for (size_t i = 1; i < count && !is_nan(x[at]); ++i) {
    if (is_nan(x[i]) || (greatest ? hipemu::less(x[at], x[i]) : hipemu::less(x[i], x[at]))) at = i;
  }
  return at;
}

template <class T>
T reduced(const T* x, size_t count, int operation) {
  if (operation == SUM || operation == PROD) return total(x, count, operation == SUM);
  return x[best(x, count, operation == MAX)];
}

// As cub::KeyValuePair; CuPy reads the key only.
template <class T>
struct Pair {
  int key;
  T value;
};

long number(ihipStream_t* stream) { return reinterpret_cast<long>(stream); }

}  // namespace

#define EXPORT __attribute__((visibility("default")))

EXPORT void cub_device_reduce(void*, size_t&, void* x, void* y, int count, ihipStream_t* stream, int operation,
                              int type) {
  dispatch(type, [&](auto one) {
    using T = decltype(one);
    hipemu::enqueue(number(stream), "cub_device_reduce", [=] {
      const T* from = hipemu::shift_here(static_cast<const T*>(x));
      const auto n = static_cast<size_t>(count);
      if (operation == ARGMIN || operation == ARGMAX) {
        auto* to = hipemu::shift_here(static_cast<Pair<T>*>(y));
        to->key = static_cast<int>(best(from, n, operation == ARGMAX));
        to->value = from[to->key];
      } else {
        *hipemu::shift_here(static_cast<T*>(y)) = reduced(from, n, operation);
      }
    });
  });
}

EXPORT void cub_device_segmented_reduce(void*, size_t&, void* x, void* y, int segments, int length,
                                        ihipStream_t* stream, int operation, int type) {
  dispatch(type, [&](auto one) {
    using T = decltype(one);
    hipemu::enqueue(number(stream), "cub_device_segmented_reduce", [=] {
      const T* from = hipemu::shift_here(static_cast<const T*>(x));
      T* to = hipemu::shift_here(static_cast<T*>(y));
      const auto n = static_cast<size_t>(length);
      for (size_t s = 0; s < static_cast<size_t>(segments); ++s) to[s] = reduced(from + s * n, n, operation);
    });
  });
}

EXPORT void cub_device_scan(void*, size_t&, void* x, void* y, int count, ihipStream_t* stream, int operation,
                            int type) {
  if (operation != CUMSUM && operation != CUMPROD) throw std::runtime_error("Unsupported operation");
  dispatch(type, [&](auto one) {
    using T = decltype(one);
    hipemu::enqueue(number(stream), "cub_device_scan", [=] {
      const T* from = hipemu::shift_here(static_cast<const T*>(x));
      T* to = hipemu::shift_here(static_cast<T*>(y));
      accumulate(from, static_cast<size_t>(count), operation == CUMSUM,
                 [=](size_t i, const auto& v) { to[i] = narrow<T>(v); });
    });
  });
}

// Bins are half open; CuPy has widened the last one. Their edges are of the samples' type, or double for integers.
EXPORT void cub_device_histogram_range(void*, size_t&, void* x, void* y, int edges, void* bins, size_t samples,
                                       ihipStream_t* stream, int type) {
  if (type == 11 || type == 12) throw std::runtime_error("complex dtype is not yet supported");
  dispatch(type, [&](auto one) {
    using T = decltype(one);
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, Half>) {
      using Edge = std::conditional_t<std::is_integral_v<T>, double, T>;
      hipemu::enqueue(number(stream), "cub_device_histogram_range", [=] {
        const T* from = hipemu::shift_here(static_cast<const T*>(x));
        const Edge* edge = hipemu::shift_here(static_cast<const Edge*>(bins));
        auto* to = hipemu::shift_here(static_cast<uint64_t*>(y));
        for (int b = 0; b + 1 < edges; ++b) to[b] = 0;
        for (size_t i = 0; i < samples; ++i) {
          const auto v = static_cast<double>(plain(from[i]));
          int low = 0, high = edges;
          while (low < high) {  // to the first edge beyond v
            const int middle = low + (high - low) / 2;
            if (static_cast<double>(plain(edge[middle])) > v) {
              high = middle;
            } else {
              low = middle + 1;
            }
          }
          if (low > 0 && low < edges) ++to[low - 1];
        }
      });
    }
  });
}

// No room is needed; a byte, since a real card never asks for none.
EXPORT size_t cub_device_reduce_get_workspace_size(void*, void*, int, ihipStream_t*, int, int) { return 1; }
EXPORT size_t cub_device_segmented_reduce_get_workspace_size(void*, void*, int, int, ihipStream_t*, int, int) {
  return 1;
}
EXPORT size_t cub_device_scan_get_workspace_size(void*, void*, int, ihipStream_t*, int, int) { return 1; }
EXPORT size_t cub_device_histogram_range_get_workspace_size(void*, void*, int, void*, size_t, ihipStream_t*, int) {
  return 1;
}
