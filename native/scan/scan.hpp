// The scan's interface: the k codes of least score for each query.
//
// A query is a table of 16 integers for each nibble. With v_g the nibbles of code i, which stands in cell c, and
//
//   D_i = sum over g of T_g[v_g]
//
// the score of the code is
//
//   offset_c + unit * D_i                    without a column
//   offset_c + s_i * (base + unit * D_i)     with one
//
// D is an exact integer; the other operations are those of double, each rounded once, in this order, and NaN (from
// 0 * infinity) counts as infinity. Codes are ordered by (score, id). So the result depends on nothing but the input:
// not on the batch, on threads or on the instruction set.
//
// The table of the last nibble may change from cell to cell: T_last[v] + v * step_c.
#pragma once

#include "scan/codes.hpp"

namespace antisparse {

// Queries as tables. A query visits all cells, or those it probes, in the order given.
struct Queries {
  const std::int32_t* tables = nullptr;  // count x nibbles x 16, not negative
  std::size_t count = 0, nibbles = 0;
  const double* units = nullptr;    // count
  const double* offsets = nullptr;  // count x visited
  std::size_t visited = 0;
  const double* base = nullptr;              // count, or null: the codes have no column
  const std::int64_t* probes = nullptr;      // count x visited, each a cell; null: all cells
  const std::int32_t* cell_steps = nullptr;  // count x visited, in [0, 2^23); null: 0

  const std::int32_t* table(std::size_t query) const { return tables + query * nibbles * 16; }
};

struct ScanJob {
  Codes codes;
  Queries queries;
  std::size_t k = 0;
  unsigned threads = 1;
  // Found by the scan: so many of the last bytes have tables linear in the byte, for every query.
  std::size_t linear = 0;

  double* scores = nullptr;     // queries x k, ascending; infinity where there are fewer than k codes
  std::int64_t* ids = nullptr;  // queries x k; -1 where there are fewer than k codes
};

// The scores of codes at given places: places is queries x count, negative for none, whose score is infinity.
struct ScoreJob {
  Codes codes;
  Queries queries;  // which visit all cells
  const std::int64_t* places = nullptr;
  std::size_t count = 0;
  double* scores = nullptr;
};

using Scan = void (*)(const ScanJob&);

// Throws std::invalid_argument where units, offsets, bases, steps or probes are out of range, or do not fit the codes.
// Table entries are checked when they are read.
void check(const Queries& queries, const Codes& codes);
void score_codes(const ScoreJob& job);

}  // namespace antisparse
