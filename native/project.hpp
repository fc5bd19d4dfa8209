// Y = X M, each entry summed in the same order whatever rows stand beside it, so that a vector's projection does not
// depend on its batch. (A BLAS chooses its order by the shape of the whole product.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "aligned.hpp"

namespace antisparse {

struct ProjectJob {
  const double* x = nullptr;        // n x d
  const double* m = nullptr;        // d x columns
  double* out = nullptr;            // n x columns, or null: only the nearest is wanted
  const double* half = nullptr;     // columns
  std::int64_t* nearest = nullptr;  // n: the first column k of least half_k - (x m)_k
  std::size_t n = 0, d = 0, columns = 0;
  unsigned threads = 1;
};

// Points, packed for finding the nearest of them: in float by panels of 64 bytes, to choose them, and in double by
// rows, for their products.
struct Points {
  static constexpr std::size_t panel = alignment / sizeof(float);
  Points(const double* points, const double* halves, std::size_t count, std::size_t dimension)
      : all(count),
        d(dimension),
        panels((count + panel - 1) / panel),
        stride(padded<double>(dimension)),
        packed(panels * panel * dimension),
        half(panels * panel),
        rows(count * stride) {
    for (std::size_t k = 0; k < all; ++k)
      for (std::size_t i = 0; i < d; ++i) {
        packed[(k / panel * d + i) * panel + k % panel] = static_cast<float>(points[k * d + i]);
        rows[k * stride + i] = points[k * d + i];
      }
    for (std::size_t k = 0; k < half.size(); ++k)  // padding is last of all
      half[k] = k < all ? static_cast<float>(halves[k]) : std::numeric_limits<float>::infinity();
  }
  std::size_t all, d, panels, stride;
  Aligned<float> packed, half;
  Aligned<double> rows;
};

// The `count` points m_k of least half_k - x.m_k, chosen in float, nearest first, and the products x.m_k, in double.
struct NearestJob {
  const Points* points = nullptr;
  const double* x = nullptr;        // n x d
  std::int64_t* nearest = nullptr;  // n x count
  double* products = nullptr;       // n x count
  std::size_t n = 0, count = 0;
  unsigned threads = 1;
};

using Project = void (*)(const ProjectJob&);
using Nearest = void (*)(const NearestJob&);

}  // namespace antisparse
