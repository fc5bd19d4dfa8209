// Y = X M, each entry summed in the same order whatever rows stand beside it, so that a vector's projection does not
// depend on its batch. (A BLAS chooses its order by the shape of the whole product.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/aligned.hpp"
#include "machine/watch.hpp"

namespace antisparse {

// The columns of a matrix (d x count) by panels of 64 bytes, so that a row vector meets several at once.
struct Panels {
  static constexpr std::size_t width = alignment / sizeof(double);
  Panels(const double* m, std::size_t dimension, std::size_t columns)
      : d(dimension), count((columns + width - 1) / width), packed(count * width * dimension) {
    for (std::size_t i = 0; i < d; ++i) {
      for (std::size_t k = 0; k < columns; ++k) packed[(k / width * d + i) * width + k % width] = m[i * columns + k];
      tick(columns);
    }
  }
  const double* panel(std::size_t p) const { return &packed[p * d * width]; }

  std::size_t d, count;
  Aligned<double> packed;
};

struct ProjectJob {
  const double* x = nullptr;        // n x d
  const double* m = nullptr;        // d x columns
  double* out = nullptr;            // n x columns, or null: only the nearest is wanted
  const double* half = nullptr;     // columns
  std::int64_t* nearest = nullptr;  // n: the first column k of least half_k - (x m)_k
  std::size_t n = 0, d = 0, columns = 0;
  unsigned threads = 1;
};

using Project = void (*)(const ProjectJob&);

}  // namespace antisparse
