// The greatest entries of nibble tables.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#ifdef ANTISPARSE_TARGET_AVX2
#include <immintrin.h>
#endif

namespace antisparse::ANTISPARSE_ISA {

// Of some tables of 16: the sum of the greatest entry of each, the greatest of all, and whether any is negative.
struct Maxima {
  std::int64_t sum = 0;
  std::int32_t largest = 0;
  bool negative = false;
};

inline Maxima maxima(const std::int32_t* tables, std::size_t count) {
  Maxima found;
#ifdef ANTISPARSE_TARGET_AVX2
  __m256i any = _mm256_setzero_si256();
  for (const std::int32_t* end = tables + 16 * count; tables < end; tables += 16) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tables));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tables + 8));
    any = _mm256_or_si256(any, _mm256_or_si256(low, high));
    const __m256i eight = _mm256_max_epi32(low, high);
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    const std::int32_t most = _mm_cvtsi128_si32(four);
    found.sum += most;
    found.largest = std::max(found.largest, most);
  }
  found.negative = _mm256_movemask_ps(_mm256_castsi256_ps(any)) != 0;
#else
  std::int32_t any = 0;
  for (const std::int32_t* end = tables + 16 * count; tables < end; tables += 16) {
    std::int32_t most = 0;
    for (std::size_t v = 0; v < 16; ++v) {
      any |= tables[v];
      most = std::max(most, tables[v]);
    }
    found.sum += most;
    found.largest = std::max(found.largest, most);
  }
  found.negative = any < 0;
#endif
  return found;
}

}  // namespace antisparse::ANTISPARSE_ISA
