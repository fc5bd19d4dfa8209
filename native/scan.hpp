// The scan's interface: the k codes of least score for each query, by one linear form (docs/search.md).
//
// Codes stand in blocks of 32: byte j of the 32 codes of a block is contiguous. A query has one integer weight W_j a
// bit; with b in {-1, +1}, S = sum_j W_j b_j and D = sum of |W_j| over the bits that disagree with the sign of W_j, so
// that S = T - 2 D with T = sum_j |W_j|. The score of code i is
//
//   D                                        where there are no terms
//   bias_i + scale_i * (S * unit)            else, scale_i <= 0, in double, each operation rounded once
//
// and codes are ordered by (score, id). Sums are exact integers: the result depends on nothing but the input.
//
// Two things may be added. Side bytes follow the bits of a code, each with a weight of its own: D counts weight * byte
// for each of them too. And codes may stand in cells, ranges of blocks with an offset a query each; a score is then
//
//   offset_cell + D * unit                   where there are no terms
//   offset_cell + (bias_i + scale_i * (S * unit))   else
//
// In place of a side byte, the last four bits of a code may be a number, of no more than 15: D counts weight * number
// for it, the weight being one a query and cell.
//
// Four bits may be one of 16 words rather than four signs. A query then has a weight W_jv for each value v of each four
// bits; with M_j the greatest of these, D = sum_j (M_j - W_jv), and T = 2 sum_j M_j makes S = T - 2 D twice the sum of
// weights: the unit is half of theirs.
//
// Terms may be bytes: scale_i = -0.5 / (reach_low + reach_step * byte) and bias_i = bias_low + bias_step * byte, each
// operation in double and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace antisparse {

constexpr std::size_t scan_block = 32;

struct ScanJob {
  const std::uint8_t* blocks = nullptr;     // ceil(n / 32) blocks of 32 * bytes
  std::size_t n = 0, bits = 0, bytes = 0;   // positions; bits of a code; its bytes, side bytes included
  std::size_t side = 0;                     // side bytes
  bool words = false;                       // four bits are a word; bits in whole fours
  bool nibble = false;                      // the low half of the last byte is a number; without side bytes
  const std::int64_t* positions = nullptr;  // the id of each position, -1 for padding; or null: the position itself
  const std::int64_t* cell_ends = nullptr;  // the block after the last of each cell; with positions only
  std::size_t cells = 0;                    // 0: no cells
  const float* scale = nullptr;             // n padded to a block, or null: no terms
  const float* bias = nullptr;              // n padded to a block, or null: bias0 for all
  float bias0 = 0;
  const float* reach = nullptr;               // with terms: 1 / (-2 scale_i), NaN where scale_i = 0
  const std::uint8_t* reach_bytes = nullptr;  // terms as bytes, padded to a block, in place of scale, bias and reach
  const std::uint8_t* bias_bytes = nullptr;
  double reach_low = 0, reach_step = 0, bias_low = 0, bias_step = 0;
  bool terms() const { return scale || reach_bytes; }
  bool unreachable = false;                                              // some reach is NaN
  float least_reach = 0, most_reach = 0, least_bias = 0, most_bias = 0;  // over all codes, NaN left out

  const std::int32_t* weights = nullptr;  // queries x columns, |W_j| < 2^24
  std::size_t columns() const { return words ? 4 * bits : bits; }
  const std::int32_t* side_weights = nullptr;  // queries x side, or, with a nibble, queries x visited; in [0, 2^23)
  const double* offsets = nullptr;             // queries x cells, or, with probes, queries x probe_count
  const std::int64_t* probes = nullptr;        // queries x probe_count, each a cell; or null: all cells
  std::size_t probe_count = 0;
  // Cells a query visits; 1 without cells.
  std::size_t visited() const { return probes ? probe_count : cells ? cells : 1; }
  const double* unit = nullptr;  // one a query
  std::size_t queries = 0, k = 0;
  unsigned threads = 1;

  double* scores = nullptr;     // queries x k, ascending; infinity where there are fewer than k codes
  std::int64_t* ids = nullptr;  // queries x k; -1 where there are fewer than k codes
};

// The scores of given codes: ids is queries x count, each in [0, n) or negative for none (score infinity).
struct ScoreJob {
  const ScanJob* base = nullptr;
  const std::int64_t* ids = nullptr;
  std::size_t count = 0;
  double* scores = nullptr;
};

using Scan = void (*)(const ScanJob&);

void score_codes(const ScoreJob& job);

}  // namespace antisparse
