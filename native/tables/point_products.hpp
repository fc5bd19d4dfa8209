// Products of vectors rounded to 16 bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef ANTISPARSE_TARGET_AVX2
#include <immintrin.h>
#endif

#include "tables/points.hpp"

namespace antisparse::ANTISPARSE_ISA {

// The products of 16 points, by pairs of their numbers, with `tile` vectors.
template <std::size_t tile>
inline void multiply_pairs(const std::int16_t* panel, const std::int16_t* vectors, std::size_t pairs, std::int32_t* out,
                           std::size_t out_stride) {
#ifdef ANTISPARSE_TARGET_AVX2
  __m256i sums[tile][2];
  for (std::size_t v = 0; v < tile; ++v) sums[v][0] = sums[v][1] = _mm256_setzero_si256();
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto* points = reinterpret_cast<const __m256i*>(panel + 2 * Points::width * i);
    const __m256i low = _mm256_load_si256(points), high = _mm256_load_si256(points + 1);
    for (std::size_t v = 0; v < tile; ++v) {
      std::int32_t pair;
      std::memcpy(&pair, vectors + 2 * (v * pairs + i), sizeof pair);
      const __m256i both = _mm256_set1_epi32(pair);
      sums[v][0] = _mm256_add_epi32(sums[v][0], _mm256_madd_epi16(low, both));
      sums[v][1] = _mm256_add_epi32(sums[v][1], _mm256_madd_epi16(high, both));
    }
  }
  for (std::size_t v = 0; v < tile; ++v)
    for (std::size_t h = 0; h < 2; ++h)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + v * out_stride + 8 * h), sums[v][h]);
#else
  for (std::size_t v = 0; v < tile; ++v) {
    std::int32_t sums[Points::width] = {};
    for (std::size_t i = 0; i < pairs; ++i)
      for (std::size_t k = 0; k < Points::width; ++k)
        for (std::size_t j = 0; j < 2; ++j)
          sums[k] += std::int32_t{panel[2 * (Points::width * i + k) + j]} * vectors[2 * (v * pairs + i) + j];
    std::copy_n(sums, Points::width, out + v * out_stride);
  }
#endif
}

}  // namespace antisparse::ANTISPARSE_ISA
