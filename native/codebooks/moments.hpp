// What codebooks are fitted to: how often codewords of two codebooks were chosen together, and the sum of the vectors
// that chose a codeword. These are x'x and x'y of least squares, x being 1 at the codewords chosen and 0 elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace antisparse {

struct MomentJob {
  const std::uint8_t* bits = nullptr;  // n x ceil(books / 2), the first codebook in the high half of its byte
  const double* y = nullptr;           // n x d
  std::size_t n = 0, d = 0, books = 0;
  std::uint32_t* counts = nullptr;  // 16 books x 16 books, added to; of two codebooks in the rows of the first alone
  double* sums = nullptr;           // 16 books x d, added to in the order of the rows
  unsigned threads = 1;
};

void add_moments(const MomentJob& job);

}  // namespace antisparse
