// The frame A as the solver reads it: diagonal blocks behind an optional rotation. A dense frame is one block.
#pragma once

#include <cstddef>
#include <vector>

#include "machine/aligned.hpp"

namespace antisparse {

// One d x m block, kept by rows and by columns so that A^T v and A x are both sums of contiguous arrays.
template <class T>
struct Block {
  std::size_t d = 0, m = 0;    // true sizes
  std::size_t dp = 0, mp = 0;  // padded sizes
  std::size_t rank = 0;        // min(d, m): the caller has checked that the block has full rank
  Aligned<T> rows;             // d arrays of mp
  Aligned<T> columns;          // m arrays of dp
  Aligned<T> gram;             // A^T A as m arrays of mp; empty where it would be too large to keep

  // a: d x m, C order.
  Block(const double* a, std::size_t d_, std::size_t m_);
};

template <class T>
struct Frame {
  static constexpr std::size_t panel = alignment / sizeof(T);

  std::size_t d = 0, m = 0, dp = 0;
  std::vector<Block<T>> blocks;
  std::vector<std::size_t> row_start, column_start;  // where each block begins in y and in x
  // A = rotation * diag(blocks); empty for the identity. Cut into panels of `panel` columns, each stored by rows, so
  // that one stays in cache while many vectors pass.
  Aligned<T> rotation;

  void add_block(const double* a, std::size_t block_d, std::size_t block_m);
  void set_rotation(const double* rotation_rows);
};

extern template struct Block<float>;
extern template struct Block<double>;
extern template struct Frame<float>;
extern template struct Frame<double>;

}  // namespace antisparse
