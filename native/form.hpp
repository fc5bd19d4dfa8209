// Queries made ready for the scan: projected on the frame, rounded to integers, and their nearest cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "aligned.hpp"

namespace antisparse {

// The columns of a matrix (d x count) by panels of 64 bytes, so that a row vector meets several at once.
template <class T>
struct Panels {
  static constexpr std::size_t width = alignment / sizeof(T);
  Panels() = default;
  Panels(const double* m, std::size_t dimension, std::size_t columns, std::size_t row_stride, std::size_t column_stride)
      : d(dimension), count((columns + width - 1) / width), packed(count * width * dimension) {
    for (std::size_t k = 0; k < columns; ++k)
      for (std::size_t i = 0; i < d; ++i)
        packed[(k / width * d + i) * width + k % width] = static_cast<T>(m[i * row_stride + k * column_stride]);
  }
  const T* panel(std::size_t p) const { return &packed[p * d * width]; }

  std::size_t d = 0, count = 0;
  Aligned<T> packed;
};

// Points, ready for finding the nearest of them: in float to choose them, and in double for their products.
struct Points {
  Points() = default;
  Points(const double* points, const double* halves, std::size_t count, std::size_t d)
      : all(count),
        stride(padded<double>(d)),
        panels(points, d, count, 1, d),
        half((count + 31) / 32 * 32),
        rows(count * stride) {
    for (std::size_t k = 0; k < all; ++k)
      for (std::size_t i = 0; i < d; ++i) rows[k * stride + i] = points[k * d + i];
    for (std::size_t k = 0; k < half.size(); ++k)  // padding is last of all
      half[k] = k < all ? static_cast<float>(halves[k]) : std::numeric_limits<float>::infinity();
  }
  std::size_t all = 0, stride = 0;
  Panels<float> panels;
  Aligned<float> half;
  Aligned<double> rows;
};

// For every row x, from which `shift` is taken: x A, rounded, and ||x||^2; and of the points m_k the `probes` of least
// half_k - x.m_k, chosen in float, nearest first, with the products x.m_k in double.
struct FormJob {
  const float* single = nullptr;  // n x d, or
  const double* x = nullptr;      // n x d
  const double* shift = nullptr;  // d, or null
  const Panels<double>* frame = nullptr;
  std::size_t n = 0, bits = 0, probes = 0;
  const Points* points = nullptr;  // or null: with probes = 0
  double at_least = 0;
  std::int32_t* weights = nullptr;  // n x bits
  double* units = nullptr;          // n; NaN where a weight is not finite
  double* totals = nullptr;         // n: the sum of |weight|, times the unit
  double* squares = nullptr;        // n
  std::int64_t* nearest = nullptr;  // n x probes
  double* products = nullptr;       // n x probes
  unsigned threads = 1;
};

using MakeForms = void (*)(const FormJob&);
// Rows of `count` values as integers times a unit each, which is NaN where a value is not finite.
using RoundRows = void (*)(const double* values, std::size_t n, std::size_t count, double at_least,
                           std::int32_t* rounded, double* units);

}  // namespace antisparse
