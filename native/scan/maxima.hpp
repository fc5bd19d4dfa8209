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

// `each` has room for three more than there are tables.
inline Maxima maxima(const std::int32_t* tables, std::size_t count, std::int32_t* each) {
  Maxima found;
#ifdef ANTISPARSE_TARGET_AVX2
  __m256i any = _mm256_setzero_si256(), sum = any;
  __m128i largest = _mm_setzero_si128();
  const auto eight = [&](const std::int32_t* table) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table + 8));
    any = _mm256_or_si256(any, _mm256_or_si256(low, high));
    return _mm256_max_epi32(low, high);
  };
  const auto pair = [](__m256i a, __m256i b) {
    return _mm256_max_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  };
  // Four tables at a time, the last ones with zeros in place of those that are missing.
  for (std::size_t g = 0; g < count; g += 4) {
    __m256i rows[4];
    for (std::size_t i = 0; i < 4; ++i) rows[i] = g + i < count ? eight(tables + 16 * (g + i)) : _mm256_setzero_si256();
    const __m256i first = pair(rows[0], rows[1]), second = pair(rows[2], rows[3]);
    const __m256i both = _mm256_max_epi32(_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second));
    const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(each + g), four);
    largest = _mm_max_epi32(largest, four);
    sum = _mm256_add_epi64(sum, _mm256_cvtepi32_epi64(four));
  }
  alignas(32) std::int64_t sums[4];
  alignas(16) std::int32_t most[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(sums), sum);
  _mm_store_si128(reinterpret_cast<__m128i*>(most), largest);
  found.sum = sums[0] + sums[1] + sums[2] + sums[3];
  found.largest = *std::max_element(most, most + 4);
  found.negative = _mm256_movemask_ps(_mm256_castsi256_ps(any)) != 0;
#else
  std::int32_t any = 0;
  for (const std::int32_t* end = tables + 16 * count; tables < end; tables += 16) {
    std::int32_t most = 0;
    for (std::size_t v = 0; v < 16; ++v) {
      any |= tables[v];
      most = std::max(most, tables[v]);
    }
    *each++ = most;
    found.sum += most;
    found.largest = std::max(found.largest, most);
  }
  found.negative = any < 0;
#endif
  return found;
}

}  // namespace antisparse::ANTISPARSE_ISA
