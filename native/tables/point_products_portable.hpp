// Products for any CPU: see point_products.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tables/points.hpp"

namespace antisparse::ANTISPARSE_ISA {

template <std::size_t tile>
inline void multiply_pairs(const std::int16_t* panel, const std::int16_t* vectors, std::size_t pairs, std::int32_t* out,
                           std::size_t out_stride) {
  for (std::size_t v = 0; v < tile; ++v) {
    std::int32_t sums[Points::width] = {};
    for (std::size_t i = 0; i < pairs; ++i)
      for (std::size_t k = 0; k < Points::width; ++k)
        for (std::size_t j = 0; j < 2; ++j)
          sums[k] += std::int32_t{panel[2 * (Points::width * i + k) + j]} * vectors[2 * (v * pairs + i) + j];
    std::copy_n(sums, Points::width, out + v * out_stride);
  }
}

}  // namespace antisparse::ANTISPARSE_ISA
