// Words that rebuild a vector well: one of 16 columns of the frame for every four bits (docs/words.md).
//
// With c = A'y and G = A'A, and x = 1 at the words chosen and 0 elsewhere, the error is ||y - A x||^2 = ||y||^2 - 2 c.x
// + x.G x, so that c and G are all that is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace antisparse {

constexpr std::size_t word_count = 16;

struct WordJob {
  const double* y = nullptr;     // n x d
  double factor = 1;             // of y
  const float* frame = nullptr;  // groups x d x 16: the columns of A
  const float* gram = nullptr;   // 16 groups x 16 groups: G
  std::size_t n = 0, d = 0, groups = 0;
  std::size_t moves = 0;         // from one word to another, at most
  std::size_t tenure = 0;        // moves for which a group that moved stays; 0 moves only while that gains
  std::uint8_t* bits = nullptr;  // n x ceil(groups / 2), the first group in the high half of its byte: written
  float *along = nullptr, *size = nullptr;  // of the words found: c.x and x.G x
  unsigned threads = 1;
};

using FindWords = void (*)(const WordJob&);

}  // namespace antisparse
