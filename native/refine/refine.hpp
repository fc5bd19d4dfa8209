// Signs that rebuild a vector well: annealing and flips (docs/refine.md).
//
// With c = A'y and G = A'A the error is ||y - A b||^2 = ||y||^2 - 2 c.b + b.G b, so that c and G are all that is
// needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace antisparse {

enum class Objective { euclidean, cosine };

struct RefineJob {
  const float* correlations = nullptr;  // n x m: c of every vector
  const float* gram = nullptr;          // m x m: G
  const std::int64_t* ends = nullptr;   // the diagonal blocks of G, as the column after the last of each
  std::size_t n = 0, m = 0, blocks = 0;
  std::size_t sweeps = 0;  // of annealing; 0 starts from the bits given
  std::size_t flips = 0;   // at most, after that
  std::size_t tenure = 0;  // flips for which a flipped bit stays; 0 takes flips only while they gain
  Objective objective = Objective::euclidean;
  float* scales =
      nullptr;            // where vectors have scales (s A b rebuilds y): a first one, and then the best for the signs
  std::size_t turns = 0;  // with scales: how often flips go on from the best one
  float least_scale = 0;
  std::uint8_t* bits = nullptr;  // n x ceil(m / 8), the first bit of a byte its most significant: read and written
  float *dot = nullptr, *squared_norm = nullptr;  // of the signs found: c.b and b.G b = ||A b||^2
  unsigned threads = 1;
};

using Refine = void (*)(const RefineJob&);

}  // namespace antisparse
