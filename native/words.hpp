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
// The cost of a word, given those of other groups, is G_ii / 2 - c_i + the sum of G_ij over theirs. `reach` is the most
// that such a sum can be, in part or in full. As integers of 16 bits, costs have `room` for it and for as much of
// G_ii / 2 - c_i; vectors with more have floats, and so have those whose error is so small that rounding would show.
struct WordFrame {
  // The frame is groups x d x 16, and the Gram matrix 16 groups x 16 groups; the longest word has length 1.
  WordFrame(const float* frame, const float* gram, std::size_t dimension, std::size_t group_count)
      : d(dimension),
        groups(group_count),
        columns(word_count * groups),
        stride(padded<float>(d)),
        panels(columns * d),
        words(columns * stride),
        half(columns),
        products(columns * columns),
        rounded(columns * columns) {
    std::copy_n(frame, panels.size(), panels.data());
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t own = i / word_count;
      for (std::size_t k = 0; k < d; ++k) words[i * stride + k] = frame[(own * d + k) * word_count + i % word_count];
      half[i] = gram[i * columns + i] / 2;
      std::copy_n(gram + i * columns, columns, &products[i * columns]);
      std::fill_n(&products[i * columns + own * word_count], word_count, 0.0f);  // never chosen together
      float low = 0, high = 0;
      for (std::size_t j = 0; j < groups; ++j) {
        const float* of_group = &products[i * columns + j * word_count];
        low += std::min(*std::min_element(of_group, of_group + word_count), 0.0f);
        high += std::max(*std::max_element(of_group, of_group + word_count), 0.0f);
      }
      reach = std::max({reach, -low, high});
    }
    const int room = std::numeric_limits<std::int16_t>::max() - static_cast<int>(groups);  // every product is rounded
    unit = 2 * reach / static_cast<float>(room);
    least_error = 256 * std::sqrt(static_cast<float>(groups)) * unit;
    for (std::size_t i = 0; i < products.size(); ++i)
      rounded[i] = static_cast<std::int16_t>(std::lrint(products[i] / unit));
  }

  std::size_t d, groups, columns, stride;
  float reach = 2, unit = 0;           // of the integers; a reach less than that would gain nothing
  float least_error = 0;               // for them: some hundred times what rounding may add
  Aligned<float> panels, words, half;  // A by groups x d x 16, and by words; half the diagonal of G
  Aligned<float> products;             // G by rows, without the products of words of one group
  Aligned<std::int16_t> rounded;       // over the unit
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
