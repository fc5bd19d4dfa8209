// Y = X M, each entry summed in the same order whatever rows stand beside it, so that a vector's projection does not
// depend on its batch. (A BLAS chooses its order by the shape of the whole product.)
#pragma once

#include <cstddef>
#include <cstdint>

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

using Project = void (*)(const ProjectJob&);

}  // namespace antisparse
