// Codewords that rebuild a vector well: every four bits of a code choose one of the 16 codewords of a codebook, and the
// vector is rebuilt as the sum of the codewords chosen.
//
// The codewords are the columns of a frame A. With c = A'y and G = A'A, and x = 1 at the codewords chosen and 0
// elsewhere, the error is ||y - A x||^2 = ||y||^2 - 2 c.x + x.G x, so that c and G are all that is needed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "machine/aligned.hpp"
#include "machine/watch.hpp"

namespace antisparse {

constexpr std::size_t codewords = 16;          // of a codebook
constexpr std::size_t most_codewords = 65536;  // of all codebooks: their numbers have 16 bits

// A and G prepared for the search.
//
// The cost of a codeword, given those that the other codebooks have chosen, is G_ii / 2 - c_i + the sum of G_ij over
// these. `largest_sum` is the largest magnitude of such a sum, in part or in full. As integers of 16 bits, costs have
// room for it and for as much of G_ii / 2 - c_i; vectors whose costs need more are searched in float, and so are those
// whose error is so small that rounding would show.
struct CodebookFrame {
  // The frame is books x d x 16, and the Gram matrix 16 books x 16 books; the longest codeword has length 1.
  CodebookFrame(const float* frame, const float* gram, std::size_t dimension, std::size_t book_count)
      : d(dimension),
        books(book_count),
        columns(codewords * books),
        stride(padded<float>(d)),
        panels(columns * d),
        rows(columns * stride),
        half(columns),
        products(columns * columns),
        rounded(columns * columns + codewords) {
    std::copy_n(frame, panels.size(), panels.data());
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t own = i / codewords;
      for (std::size_t k = 0; k < d; ++k) rows[i * stride + k] = frame[(own * d + k) * codewords + i % codewords];
      half[i] = gram[i * columns + i] / 2;
      std::copy_n(gram + i * columns, columns, &products[i * columns]);
      std::fill_n(&products[i * columns + own * codewords], codewords, 0.0f);  // never chosen together
      float low = 0, high = 0;
      for (std::size_t j = 0; j < books; ++j) {
        const float* of_book = &products[i * columns + j * codewords];
        low += std::min(*std::min_element(of_book, of_book + codewords), 0.0f);
        high += std::max(*std::max_element(of_book, of_book + codewords), 0.0f);
      }
      largest_sum = std::max({largest_sum, -low, high});
      tick(4 * columns);
    }
    const int room = std::numeric_limits<std::int16_t>::max() - static_cast<int>(books);  // every product is rounded
    unit = 2 * largest_sum / static_cast<float>(room);
    least_error = 64 * std::sqrt(static_cast<float>(books)) * unit;
    integers = expected_error(gram) >= least_error;
    for (std::size_t i = 0; i < columns; ++i, tick(4 * columns))
      for (std::size_t j = i * columns; j < (i + 1) * columns; ++j)
        rounded[j] = static_cast<std::int16_t>(std::lrint(products[j] / unit));
  }

  // About the mean squared error of the codes: quantisers leave a twelfth of the squared distance between neighbours.
  float expected_error(const float* gram) const {
    float error = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t first = i / codewords * codewords;
      float nearest = std::numeric_limits<float>::infinity();
      for (std::size_t j = first; j < first + codewords; ++j)
        if (j != i)
          nearest = std::min(nearest, gram[i * columns + i] + gram[j * columns + j] - 2 * gram[i * columns + j]);
      error += nearest / (12 * codewords);
    }
    return error;
  }

  std::size_t d, books, columns, stride;
  float largest_sum = 2, unit = 0;    // the unit of the integers; a sum below 2 would gain nothing
  float least_error = 0;              // that integers are used for: some hundred times what rounding may add
  bool integers = true;               // whether most vectors have so much
  Aligned<float> panels, rows, half;  // A by books x d x 16, and by codewords; half the diagonal of G
  Aligned<float> products;            // G by rows, without the products of codewords of one codebook
  Aligned<std::int16_t> rounded;      // the products over the unit; a vector may reach beyond the last row
};

struct CodebookJob {
  const double* y = nullptr;  // n x d
  double factor = 1;          // of y
  const CodebookFrame* frame = nullptr;
  std::size_t n = 0;
  std::size_t moves = 0;         // from one codeword to another, at most
  std::size_t tenure = 0;        // moves for which a codebook that moved stays; 0 moves only while that gains
  std::uint8_t* bits = nullptr;  // n x ceil(books / 2), the first codebook in the high half of its byte: written
  float *dot = nullptr, *squared_norm = nullptr;  // of the codewords found: c.x and x.G x = ||A x||^2
  unsigned threads = 1;
};

using FindCodewords = void (*)(const CodebookJob&);

}  // namespace antisparse
