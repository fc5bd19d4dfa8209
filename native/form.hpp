// Queries made ready for the scan: projected on the frame, rounded to integers, and their nearest cells.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "aligned.hpp"
#include "project.hpp"

namespace antisparse {

// Points, ready for finding the nearest of them: rounded to 16 bits to leave out most of them, and in double.
struct Points {
  static constexpr std::size_t width = 16;  // points a panel: of each two numbers, of all the next two, and so on
  static constexpr double longest = 32767;  // of a rounded vector: so the product of two fits 32 bits
  Points() = default;
  Points(const double* points, const double* halves, std::size_t count, std::size_t dimension)
      : all(count),
        d(dimension),
        stride(padded<double>(d)),
        pairs((d + 1) / 2),
        half((count + 31) / 32 * 32),
        rows(count * stride),
        exact_half(halves, halves + count),
        panels((count + width - 1) / width * width * 2 * pairs) {
    for (std::size_t k = 0; k < all; ++k) {
      double square = 0;
      for (std::size_t i = 0; i < d; ++i) {
        rows[k * stride + i] = points[k * d + i];
        square += points[k * d + i] * points[k * d + i];
      }
      size = std::max(size, std::sqrt(square));
      largest_half = std::max(largest_half, std::abs(halves[k]));
    }
    for (std::size_t k = 0; k < half.size(); ++k)  // padding is last of all
      half[k] = k < all && largest_half < 1e30 ? static_cast<float>(halves[k]) : std::numeric_limits<float>::infinity();
    if (!(size > 0 && size < 1e30)) return;
    for (std::size_t k = 0; k < all; ++k)
      for (std::size_t i = 0; i < d; ++i)
        panels[(k / width * pairs + i / 2) * 2 * width + k % width * 2 + i % 2] =
            static_cast<std::int16_t>(std::lround(points[k * d + i] * (longest / size)));
  }

  std::size_t all = 0, d = 0, stride = 0, pairs = 0;
  double size = 0, largest_half = 0;  // the greatest length of a point, and half
  Aligned<float> half;
  Aligned<double> rows;
  std::vector<double> exact_half;
  Aligned<std::int16_t> panels;
};

// For every row x, from which `shift` is taken: x A, rounded, and ||x||^2; and of the points m_k the `probes` of least
// half_k - x.m_k, nearest first, with the products x.m_k.
struct FormJob {
  const float* single = nullptr;  // n x d, or
  const double* x = nullptr;      // n x d
  const double* shift = nullptr;  // d, or null
  const Panels* frame = nullptr;
  std::size_t n = 0, columns = 0, probes = 0;
  bool words = false;              // columns are words, 16 for every four bits (scan.hpp)
  const Points* points = nullptr;  // or null: with probes = 0
  double at_least = 0;
  std::int32_t* weights = nullptr;  // n x columns
  double* units = nullptr;          // n; NaN where a weight is not finite
  double* totals = nullptr;         // n: T of scan.hpp, times the unit
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
