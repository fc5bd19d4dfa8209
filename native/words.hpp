// Words that rebuild a vector well: one of 16 columns of the frame for every four bits (docs/words.md).
//
// With c = A'y and G = A'A, and x = 1 at the words chosen and 0 elsewhere, the error is ||y - A x||^2 = ||y||^2 - 2 c.x
// + x.G x, so that c and G are all that is needed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "aligned.hpp"

namespace antisparse {

constexpr std::size_t word_count = 16;
constexpr std::size_t most_words = 65536;  // of all groups: their numbers have 16 bits

// A and G prepared for the search.
//
// Its costs are integers of 16 bits. The cost of a word, given those of other groups, is G_ii / 2 - c_i + the sum of
// G_ij over theirs. `reach` is the most that the sum can be, and c_i is no more for vectors that words rebuild: so that
// 2 reach have 15 bits and a sign. A vector of larger c has a coarser unit, by powers of two: its level.
struct WordFrame {
  static constexpr int levels = 16;  // in the last one products are 0, and c is all that counts

  // The frame is groups x d x 16, and the Gram matrix 16 groups x 16 groups.
  WordFrame(const float* frame, const float* gram, std::size_t dimension, std::size_t group_count)
      : d(dimension),
        groups(group_count),
        columns(word_count * groups),
        stride(padded<float>(d)),
        panels(columns * d),
        words(columns * stride),
        half(columns),
        rows(columns * columns) {
    std::copy_n(frame, panels.size(), panels.data());
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t own = i / word_count;
      for (std::size_t k = 0; k < d; ++k) words[i * stride + k] = frame[(own * d + k) * word_count + i % word_count];
      half[i] = gram[i * columns + i] / 2;
      float low = 0, high = 0;
      for (std::size_t j = 0; j < groups; ++j) {
        const float* products = gram + i * columns + j * word_count;
        const auto ends = std::minmax_element(products, products + word_count);
        if (j == own) continue;
        low += *ends.first;
        high += *ends.second;
      }
      reach = std::max({reach, -low, high, half[i]});
    }
    room = static_cast<float>(std::numeric_limits<std::int16_t>::max() - static_cast<int>(groups));  // for rounding
    for (std::size_t i = 0; i < columns; ++i)
      for (std::size_t j = 0; j < columns; ++j)  // words of one group are never chosen together
        if (i / word_count != j / word_count)
          rows[i * columns + j] = static_cast<std::int16_t>(std::lrint(gram[i * columns + j] * unit(0)));
  }

  // What 1 is, at a level.
  float unit(int level) const { return std::ldexp(room / (2 * reach), -level); }

  std::size_t d, groups, columns, stride;
  float room = 0, reach = 1e-30f;
  Aligned<float> panels, words, half;  // A by groups x d x 16, and by words; half the diagonal of G
  Aligned<std::int16_t> rows;          // of G, in units of level 0
};

struct WordJob {
  const double* y = nullptr;  // n x d
  double factor = 1;          // of y
  const WordFrame* frame = nullptr;
  std::size_t n = 0;
  std::size_t moves = 0;         // from one word to another, at most
  std::size_t tenure = 0;        // moves for which a group that moved stays; 0 moves only while that gains
  std::uint8_t* bits = nullptr;  // n x ceil(groups / 2), the first group in the high half of its byte: written
  float *along = nullptr, *size = nullptr;  // of the words found: c.x and x.G x
  unsigned threads = 1;
};

using FindWords = void (*)(const WordJob&);

}  // namespace antisparse
