// The codes that a scan reads, in columns.
//
// A code is a row of nibbles. Codes stand in blocks of 32: byte j of the 32 codes of a block is contiguous, and a byte
// holds two nibbles, the first in its high half. Blocks form cells, ranges of blocks that a query may visit or not. A
// place without a code has the id -1. One column may multiply: s_i >= 0, as float32 values or as bytes that encode its
// inverse.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ids/id_list.hpp"
#include "machine/aligned.hpp"

namespace antisparse {

constexpr std::size_t scan_block = 32;

// The id at each place, -1 where there is no code: as it stands in an array, or in a list of few bits; with neither,
// the place itself. Codes may be left out: then their ids are -1, too.
struct Ids {
  const std::int64_t* listed = nullptr;
  const IdList* packed = nullptr;
  const std::uint32_t* live = nullptr;  // a bit a place, a word a block; null: all

  explicit operator bool() const { return listed || packed || live; }

  std::int64_t at(std::size_t place) const {
    if (live && !(live[place / scan_block] >> (place % scan_block) & 1)) return -1;
    if (packed) return packed->at(place);
    return listed ? listed[place] : static_cast<std::int64_t>(place);
  }

  // The places of a block that have a code, as bits.
  std::uint32_t held(std::size_t block) const {
    std::uint32_t bits = live ? live[block] : ~std::uint32_t{0};
    if (packed) bits &= packed->held(block);
    for (std::size_t i = 0; listed && i < scan_block; ++i)
      bits &= ~(static_cast<std::uint32_t>(listed[block * scan_block + i] < 0) << i);
    return bits;
  }

  // Memory that `at` reads.
  const void* near(std::size_t place) const { return listed ? listed + place : packed ? packed->near(place) : nullptr; }
};

// Arrays of the caller's, which outlive the scan, and what follows from them.
struct Codes {
  const std::uint8_t* blocks = nullptr;     // block_count x bytes x 32
  std::size_t block_count = 0, bytes = 0;   // bytes of a code
  std::size_t places = 0;                   // that may hold a code
  Ids ids;                                  // of each place
  const std::int64_t* cell_ends = nullptr;  // the block after the last of each cell
  std::size_t cells = 1;

  const float* scales = nullptr;                // s_i by place, or
  const std::uint8_t* inverse_bytes = nullptr;  // s_i = 1 / (inverse_low + inverse_step * byte), or no column
  double inverse_low = 0, inverse_step = 0;
  const float* inverse = nullptr;  // with scales: 1 / s_i, NaN where that is out of range, so that a code has no limit
  float least_inverse = 0, most_inverse = 0;  // over all codes that have a limit
  bool unlimited = false;                     // some code has no limit

  std::size_t nibbles() const { return 2 * bytes; }
  bool column() const { return scales || inverse_bytes; }
};

// Codes with the memory for what follows from the caller's arrays.
class CodeColumns {
 public:
  // `places` arrays have 32 numbers a block. Throws std::invalid_argument where n, ids or cells do not fit.
  CodeColumns(const std::uint8_t* blocks, std::size_t block_count, std::size_t bytes, std::size_t n, const Ids& ids,
              const std::int64_t* cell_ends, std::size_t cells);
  CodeColumns(const CodeColumns&) = delete;
  CodeColumns& operator=(const CodeColumns&) = delete;

  // The multiplicative column, in one of its two forms. Throws std::invalid_argument where a value is out of range.
  void set_scales(const float* scales);
  void set_inverse_scales(const std::uint8_t* bytes, double low, double step);

  const Codes& codes() const { return codes_; }

 private:
  Codes codes_;
  std::int64_t only_end_ = 0;  // of the one cell
  Aligned<float> inverse_;
};

}  // namespace antisparse
