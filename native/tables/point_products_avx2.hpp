// Products by AVX2: see point_products.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "tables/points.hpp"

namespace antisparse::ANTISPARSE_ISA {

struct Sums {
  __m256i low, high;
};

// The vectors v... by name, not in a loop: GCC keeps the sums of a loop in memory where it does not inline this, and
// the nearest cells of a query then take half as long again.
template <std::size_t... v>
inline void multiply_pairs_of(const std::int16_t* panel, const std::int16_t* vectors, std::size_t pairs,
                              std::int32_t* out, std::size_t out_stride, std::index_sequence<v...>) {
  const __m256i zero = _mm256_setzero_si256();
  auto sums = std::make_tuple((static_cast<void>(v), Sums{zero, zero})...);
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto* points = reinterpret_cast<const __m256i*>(panel + 2 * Points::width * i);
    const __m256i low = _mm256_load_si256(points), high = _mm256_load_si256(points + 1);
    const auto add = [&](Sums& sum, const std::int16_t* vector) {
      std::int32_t pair;
      std::memcpy(&pair, vector + 2 * i, sizeof pair);
      const __m256i both = _mm256_set1_epi32(pair);
      sum.low = _mm256_add_epi32(sum.low, _mm256_madd_epi16(low, both));
      sum.high = _mm256_add_epi32(sum.high, _mm256_madd_epi16(high, both));
    };
    (add(std::get<v>(sums), vectors + 2 * v * pairs), ...);
  }
  const auto store = [&](const Sums& sum, std::int32_t* row) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row), sum.low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + 8), sum.high);
  };
  (store(std::get<v>(sums), out + v * out_stride), ...);
}

template <std::size_t tile>
inline void multiply_pairs(const std::int16_t* panel, const std::int16_t* vectors, std::size_t pairs, std::int32_t* out,
                           std::size_t out_stride) {
  multiply_pairs_of(panel, vectors, pairs, out, out_stride, std::make_index_sequence<tile>());
}

}  // namespace antisparse::ANTISPARSE_ISA
