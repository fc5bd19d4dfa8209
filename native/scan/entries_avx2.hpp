// Table entries as bytes, by AVX2: see prune.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace antisparse::ANTISPARSE_ISA {

// 32 integers as bytes, saturated, in order.
inline __m256i pack_bytes(const __m256i v[4]) {
  const __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
  return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
// out = min(entries * factor, most), rounded down; the count is a multiple of 32.
inline void quantise(const std::int32_t* entries, std::size_t count, float factor, float most, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; i += 32) {
    __m256i v[4];
    for (std::size_t p = 0; p < 4; ++p) {
      const auto* eight = reinterpret_cast<const __m256i*>(entries + i + 8 * p);
      const __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_loadu_si256(eight)), _mm256_set1_ps(factor));
      v[p] = _mm256_cvttps_epi32(_mm256_min_ps(value, _mm256_set1_ps(most)));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), pack_bytes(v));
  }
}

// The integer parts of entries * factor, below 4096, in halves; the count is a multiple of 32.
inline void split(const std::int32_t* entries, std::size_t count, float factor, std::uint8_t* high, std::uint8_t* low) {
  for (std::size_t i = 0; i < count; i += 32) {
    __m256i upper[4], lower[4];
    for (std::size_t p = 0; p < 4; ++p) {
      const auto* eight = reinterpret_cast<const __m256i*>(entries + i + 8 * p);
      const __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_loadu_si256(eight)), _mm256_set1_ps(factor));
      const __m256i entry = _mm256_cvttps_epi32(value);
      upper[p] = _mm256_srli_epi32(entry, 6);
      lower[p] = _mm256_and_si256(entry, _mm256_set1_epi32(63));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(high + i), pack_bytes(upper));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(low + i), pack_bytes(lower));
  }
}

}  // namespace antisparse::ANTISPARSE_ISA
