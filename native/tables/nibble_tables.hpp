// The tables of nibbles, from weights.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#ifdef ANTISPARSE_TARGET_AVX2
#include <immintrin.h>
#endif

namespace antisparse::ANTISPARSE_ISA {

#ifdef ANTISPARSE_TARGET_AVX2

// The table of four signs, from the weights of the bits of value 8, 4, 2, 1 and, in all lanes, the sum of those above
// zero, which is the entry of 0. A bit set disagrees with W_j < 0, clear with W_j > 0: setting it adds -W_j.
inline void sign_table(const std::int32_t* own, __m256i none, std::int32_t* table) {
  const auto where = [](std::int32_t weight, __m256i set) { return _mm256_and_si256(_mm256_set1_epi32(weight), set); };
  __m256i eight = _mm256_sub_epi32(none, where(own[1], _mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1)));
  eight = _mm256_sub_epi32(eight, where(own[2], _mm256_setr_epi32(0, 0, -1, -1, 0, 0, -1, -1)));
  eight = _mm256_sub_epi32(eight, where(own[3], _mm256_setr_epi32(0, -1, 0, -1, 0, -1, 0, -1)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(table), eight);
  eight = _mm256_sub_epi32(eight, _mm256_set1_epi32(own[0]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(table + 8), eight);
}

// The tables of two nibbles.
inline void two_sign_tables(const std::int32_t* own, std::int32_t* tables) {
  const __m256i weights = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(own));
  __m256i sums = _mm256_max_epi32(weights, _mm256_setzero_si256());
  sums = _mm256_hadd_epi32(sums, sums);
  sums = _mm256_hadd_epi32(sums, sums);  // of each half in all its lanes
  sign_table(own, _mm256_permute2x128_si256(sums, sums, 0x00), tables);
  sign_table(own + 4, _mm256_permute2x128_si256(sums, sums, 0x11), tables + 16);
}

#else

// The table of four signs, from the weights of the bits of value 8, 4, 2, 1. A bit set disagrees with W_j < 0, clear
// with W_j > 0: setting it adds -W_j.
inline void sign_table(const std::int32_t* own, std::int32_t* table) {
  table[0] = std::max(own[0], 0) + std::max(own[1], 0) + std::max(own[2], 0) + std::max(own[3], 0);
  table[1] = table[0] - own[3];
  for (std::size_t value = 0; value < 2; ++value) table[2 + value] = table[value] - own[2];
  for (std::size_t value = 0; value < 4; ++value) table[4 + value] = table[value] - own[1];
  for (std::size_t value = 0; value < 8; ++value) table[8 + value] = table[value] - own[0];
}

// The tables of two nibbles.
inline void two_sign_tables(const std::int32_t* own, std::int32_t* tables) {
  sign_table(own, tables);
  sign_table(own + 4, tables + 16);
}

#endif

// Of all the signs of a code, and zeros for the nibbles that follow; returns the sum of |W_j|.
inline std::int64_t sign_tables(const std::int32_t* weights, std::size_t bits, std::size_t nibbles,
                                std::int32_t* tables) {
  const std::size_t whole = bits / 8;  // pairs of nibbles
  for (std::size_t g = 0; g < whole; ++g) two_sign_tables(weights + 8 * g, tables + 32 * g);
  std::fill(tables + 32 * whole, tables + 16 * nibbles, 0);
  if (bits % 8) {
    std::int32_t own[8] = {}, rest[32];  // missing bits never count
    std::copy(weights + 8 * whole, weights + bits, own);
    two_sign_tables(own, rest);
    std::copy_n(rest, 16 * std::min<std::size_t>(2, nibbles - 2 * whole), tables + 32 * whole);
  }
  std::int64_t total = 0;
  for (std::size_t j = 0; j < bits; ++j) total += std::abs(static_cast<std::int64_t>(weights[j]));
  return total;
}

// Of nibbles that choose one of 16 columns each, and zeros for those that follow; returns the sum of the greatest
// weights.
inline std::int64_t choice_tables(const std::int32_t* weights, std::size_t columns, std::size_t nibbles,
                                  std::int32_t* tables) {
  std::int64_t total = 0;
  for (std::size_t j = 0; j < columns; j += 16) {
    const std::int32_t most = *std::max_element(weights + j, weights + j + 16);
    for (std::size_t v = 0; v < 16; ++v) tables[j + v] = most - weights[j + v];
    total += most;
  }
  std::fill(tables + columns, tables + 16 * nibbles, 0);
  return total;
}

}  // namespace antisparse::ANTISPARSE_ISA
