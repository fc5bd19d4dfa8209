// Points among which the nearest are looked for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "machine/aligned.hpp"
#include "machine/watch.hpp"

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
      tick(d);
      longest_point = std::max(longest_point, std::sqrt(square));
      largest_half = std::max(largest_half, std::abs(halves[k]));
    }
    for (std::size_t k = 0; k < half.size(); ++k)  // padding is last of all
      half[k] = k < all && largest_half < 1e30 ? static_cast<float>(halves[k]) : std::numeric_limits<float>::infinity();
    if (!(longest_point > 0 && longest_point < 1e30)) return;
    for (std::size_t k = 0; k < all; ++k, tick(d))
      for (std::size_t i = 0; i < d; ++i)
        panels[(k / width * pairs + i / 2) * 2 * width + k % width * 2 + i % 2] =
            static_cast<std::int16_t>(std::lround(points[k * d + i] * (longest / longest_point)));
  }

  std::size_t all = 0, d = 0, stride = 0, pairs = 0;
  double longest_point = 0, largest_half = 0;  // the greatest length of a point, and the greatest |half|
  Aligned<float> half;
  Aligned<double> rows;
  std::vector<double> exact_half;
  Aligned<std::int16_t> panels;
};

}  // namespace antisparse
