// Products by NEON: see point_products.hpp.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "tables/points.hpp"

namespace antisparse::ANTISPARSE_ISA {

struct Sums {
  int32x4_t quarters[4];
};

// The vectors v... by name, so that all sums stay in registers.
template <std::size_t... v>
inline void multiply_pairs_of(const std::int16_t* panel, const std::int16_t* vectors, std::size_t pairs,
                              std::int32_t* out, std::size_t out_stride, std::index_sequence<v...>) {
  const int32x4_t zero = vdupq_n_s32(0);
  auto sums = std::make_tuple((static_cast<void>(v), Sums{{zero, zero, zero, zero}})...);
  for (std::size_t i = 0; i < pairs; ++i) {
    // The first numbers of eight points, and the second ones.
    const std::int16_t* points = panel + 2 * Points::width * i;
    const int16x8x2_t low = vld2q_s16(points), high = vld2q_s16(points + 16);
    const auto add = [&](Sums& sum, const std::int16_t* pair) {
      for (int j = 0; j < 2; ++j) {
        const int16x8_t both = vdupq_n_s16(pair[j]);
        sum.quarters[0] = vmlal_s16(sum.quarters[0], vget_low_s16(low.val[j]), vget_low_s16(both));
        sum.quarters[1] = vmlal_high_s16(sum.quarters[1], low.val[j], both);
        sum.quarters[2] = vmlal_s16(sum.quarters[2], vget_low_s16(high.val[j]), vget_low_s16(both));
        sum.quarters[3] = vmlal_high_s16(sum.quarters[3], high.val[j], both);
      }
    };
    (add(std::get<v>(sums), vectors + 2 * (v * pairs + i)), ...);
  }
  const auto store = [&](const Sums& sum, std::int32_t* row) {
    for (int q = 0; q < 4; ++q) vst1q_s32(row + 4 * q, sum.quarters[q]);
  };
  (store(std::get<v>(sums), out + v * out_stride), ...);
}

template <std::size_t tile>
inline void multiply_pairs(const std::int16_t* panel, const std::int16_t* vectors, std::size_t pairs, std::int32_t* out,
                           std::size_t out_stride) {
  multiply_pairs_of(panel, vectors, pairs, out, out_stride, std::make_index_sequence<tile>());
}

}  // namespace antisparse::ANTISPARSE_ISA
