// Points among which the nearest are looked for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "machine/aligned.hpp"
#include "machine/watch.hpp"

namespace antisparse {

// Points, ready for finding the nearest of them: rounded to 16 bits to leave out most of them, and in double.
//
// Of more than `direct` points not all are looked at, where their order says which are near each other: the points
// `above` are the centres of the panels, and lead to the panels near a vector. The centre of a panel c has the value
// that the mean of c.c says: where half_k is m_k.m_k / 2, as for distances, it is c.c / 2, and where it is 0, it is 0.
struct Points {
  static constexpr std::size_t width = 16;  // points a panel: of each two numbers, of all the next two, and so on
  static constexpr std::size_t direct = 4096;
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
    if (all > direct) look_above();
  }

  std::size_t all = 0, d = 0, stride = 0, pairs = 0;
  double longest_point = 0, largest_half = 0;  // the greatest length of a point, and the greatest |half|
  Aligned<float> half;
  Aligned<double> rows;
  std::vector<double> exact_half;
  Aligned<std::int16_t> panels;
  std::unique_ptr<const Points> above;

 private:
  // Sets `above`, where the points of a panel are so near each other that their variance is at most two thirds of that
  // of all; 15/16 is what it is in any order.
  void look_above() {
    const std::size_t count = (all + width - 1) / width;
    std::vector<double> centres(count * d), halves(count), mean(d);
    double squares = 0, of_centres = 0, of_mean = 0;
    for (std::size_t p = 0; p < count; ++p, tick(width * d)) {
      const std::size_t first = p * width, own = std::min(width, all - first);
      double* centre = &centres[p * d];
      double square = 0;
      for (std::size_t k = first; k < first + own; ++k)
        for (std::size_t i = 0; i < d; ++i) {
          const double value = rows[k * stride + i];
          centre[i] += value;
          square += value * value;
        }
      double of_centre = 0;
      for (std::size_t i = 0; i < d; ++i) {
        mean[i] += centre[i];
        centre[i] /= static_cast<double>(own);
        of_centre += centre[i] * centre[i];
      }
      for (std::size_t k = first; k < first + own; ++k) halves[p] += exact_half[k] / static_cast<double>(own);
      if (square > 0) halves[p] *= of_centre * static_cast<double>(own) / square;
      squares += square;
      of_centres += of_centre * static_cast<double>(own);
    }
    for (std::size_t i = 0; i < d; ++i) of_mean += mean[i] * mean[i] / static_cast<double>(all);
    if (3 * (squares - of_centres) <= 2 * (squares - of_mean))
      above = std::make_unique<const Points>(centres.data(), halves.data(), count, d);
  }
};

}  // namespace antisparse
