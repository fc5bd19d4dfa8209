// Y = X M, each entry summed in the same order whatever rows stand beside it, so that a vector's projection does not
// depend on its batch. (A BLAS chooses its order by the shape of the whole product.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/aligned.hpp"
#include "machine/watch.hpp"

namespace antisparse {

// The columns of a matrix (d x columns) by panels of 64 bytes, so that a row vector meets several at once.
template <class T>
struct Panels {
  static constexpr std::size_t width = alignment / sizeof(T);
  Panels(const double* m, std::size_t dimension, std::size_t column_count)
      : d(dimension), columns(column_count), count((columns + width - 1) / width), packed(count * width * dimension) {
    for (std::size_t i = 0; i < d; ++i) {
      for (std::size_t k = 0; k < columns; ++k)
        packed[(k / width * d + i) * width + k % width] = static_cast<T>(m[i * columns + k]);
      tick(columns);
    }
  }
  const T* panel(std::size_t p) const { return &packed[p * d * width]; }

  std::size_t d, columns, count;  // of which the last counts panels
  Aligned<T> packed;
};

// In double, or in float: half the time. Rows of any size are scaled by a power of two to fit float, and back.
template <class T>
struct ProjectJob {
  const double* x = nullptr;        // n x d
  const Panels<T>* m = nullptr;     // d x columns
  double* out = nullptr;            // n x columns, or null: only the nearest is wanted
  const double* half = nullptr;     // columns
  std::int64_t* nearest = nullptr;  // n: the first column k of least half_k - (x m)_k
  std::size_t n = 0;
  unsigned threads = 1;
};

template <class T>
using Project = void (*)(const ProjectJob<T>&);

}  // namespace antisparse
