// Discrete Fourier transforms of any length, in double: powers of two directly, others by Bluestein's convolution.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <vector>

namespace hipemu::fourier {

using Complex = std::complex<double>;

// e^(sign 2 pi i k / n), from an argument reduced exactly.
inline Complex root(size_t k, size_t n, int sign) {
  const double angle = sign * 2 * M_PI * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

class Transform {
 public:
  Transform(size_t n, int sign) : n_(n), sign_(sign) {
    size_ = 1;
    while (size_ < n) size_ *= 2;
    if (size_ != n) {
      size_ = 1;
      while (size_ < 2 * n - 1) size_ *= 2;
      chirp_.resize(n);
      kernel_.assign(size_, 0);
      // k^2 modulo 2n, kept small step by step.
      size_t square = 0;
      for (size_t k = 0; k < n; ++k) {
        chirp_[k] = root(square, 2 * n, sign);
        square = (square + 2 * k + 1) % (2 * n);
      }
      kernel_[0] = std::conj(chirp_[0]);
      for (size_t k = 1; k < n; ++k) kernel_[k] = kernel_[size_ - k] = std::conj(chirp_[k]);
    }
    for (size_t k = 0; k < size_ / 2; ++k) {
      forward_.push_back(root(k, size_, -1));
      inverse_.push_back(root(k, size_, 1));
    }
    if (size_ != n) radix2(kernel_.data(), forward_);
  }

  void run(Complex* a) {
    if (chirp_.empty()) return radix2(a, sign_ < 0 ? forward_ : inverse_);
    work_.assign(size_, 0);
    for (size_t k = 0; k < n_; ++k) work_[k] = a[k] * chirp_[k];
    radix2(work_.data(), forward_);
    for (size_t k = 0; k < size_; ++k) work_[k] *= kernel_[k];
    radix2(work_.data(), inverse_);
    const double scale = 1.0 / static_cast<double>(size_);
    for (size_t k = 0; k < n_; ++k) a[k] = work_[k] * chirp_[k] * scale;
  }

 private:
  void radix2(Complex* a, const std::vector<Complex>& roots) const {
    for (size_t i = 1, j = 0; i < size_; ++i) {
      size_t bit = size_ / 2;
      for (; j & bit; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(a[i], a[j]);
    }
    for (size_t length = 2; length <= size_; length *= 2) {
      const size_t step = size_ / length;
      for (size_t start = 0; start < size_; start += length) {
        for (size_t k = 0; k < length / 2; ++k) {
          const Complex u = a[start + k], v = a[start + k + length / 2] * roots[k * step];
          a[start + k] = u + v;
          a[start + k + length / 2] = u - v;
        }
      }
    }
  }

  size_t n_, size_;
  int sign_;
  std::vector<Complex> chirp_, kernel_, forward_, inverse_, work_;
};

// Transforms a dense array of `shape` along one axis.
inline void along(Complex* data, const std::vector<size_t>& shape, size_t axis, size_t n, int sign) {
  size_t before = 1, after = 1;
  for (size_t i = 0; i < axis; ++i) before *= shape[i];
  for (size_t i = axis + 1; i < shape.size(); ++i) after *= shape[i];
  Transform transform(n, sign);
  std::vector<Complex> line(n);
  for (size_t b = 0; b < before; ++b) {
    for (size_t c = 0; c < after; ++c) {
      Complex* base = data + b * n * after + c;
      for (size_t k = 0; k < n; ++k) line[k] = base[k * after];
      transform.run(line.data());
      for (size_t k = 0; k < n; ++k) base[k * after] = line[k];
    }
  }
}

}  // namespace hipemu::fourier
