// Queries as tables for the scan (scan/scan.hpp): projected on the frame, rounded to integers, and their nearest cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "projection/project.hpp"
#include "tables/points.hpp"

namespace antisparse {

// For every row x, from which `shift` is taken: the weights x A, rounded to integers W times a unit u, as tables, and
// ||x||^2; and of the points m_k the `probes` of least half_k - x.m_k, nearest first, with the products x.m_k; of many
// points, nearly those (tables/nearest_points.hpp).
//
// The dot product of x with the combination of columns of A that the nibbles of a code choose is peak - unit * D, D
// being the sum of the table entries of the nibbles. Four columns a nibble are four signs, the first column the most
// significant bit: an entry is the sum of |W_j| over the bits that disagree with the sign of W_j, and unit = 2 u. Of 16
// columns a nibble chooses one: an entry is the greatest W less its own, and unit = u.
struct TableJob {
  const float* single = nullptr;                        // n x d, or
  const double* x = nullptr;                            // n x d
  const double* shift = nullptr;                        // d, or null
  const std::vector<Panels<double>>* blocks = nullptr;  // along the diagonal of A; all but the last fill their panels
  std::size_t d = 0;                                    // of x: the rows of all blocks
  std::size_t n = 0, columns = 0, probes = 0;
  bool signs = true;               // four columns a nibble, not 16
  std::size_t nibbles = 0;         // of a code; those beyond the frame have tables of zeros
  const Points* points = nullptr;  // or null: with probes = 0
  double at_least = 0;
  std::int32_t* tables = nullptr;   // n x nibbles x 16
  double* units = nullptr;          // n; NaN where a weight is not finite
  double* peaks = nullptr;          // n
  double* squares = nullptr;        // n
  std::int64_t* nearest = nullptr;  // n x probes
  double* products = nullptr;       // n x probes
  unsigned threads = 1;
};

// The tables of signs whose weights are integers already, |W| < 2^29.
struct SignTableJob {
  const std::int32_t* weights = nullptr;  // n x bits
  std::size_t n = 0, bits = 0, nibbles = 0;
  std::int32_t* tables = nullptr;  // n x nibbles x 16
};

// The `wanted` nearest of some points to every row, as above, in the order of their values.
struct NearestJob {
  const float* single = nullptr;  // n x d, or
  const double* x = nullptr;      // n x d
  const Points* points = nullptr;
  std::size_t n = 0, wanted = 1;
  std::int64_t* nearest = nullptr;  // n x wanted
  double* products = nullptr;       // n x wanted
  unsigned threads = 1;
};

using FindNearest = void (*)(const NearestJob&);
using MakeTables = void (*)(const TableJob&);
using MakeSignTables = void (*)(const SignTableJob&);
// Rows of `count` values as integers times a unit each, which is NaN where a value is not finite.
using RoundRows = void (*)(const double* values, std::size_t n, std::size_t count, double at_least,
                           std::int32_t* rounded, double* units);

}  // namespace antisparse
