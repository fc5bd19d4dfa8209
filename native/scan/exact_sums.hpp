// D of several codes, wherever they stand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "scan/exact.hpp"

#ifdef ANTISPARSE_TARGET_AVX512
#include <immintrin.h>
#endif

namespace antisparse::ANTISPARSE_ISA {

#ifdef ANTISPARSE_TARGET_AVX512
// Whether the codes of a block that stand together are scored together, for less than a few of them one by one.
constexpr bool together_cheap = true;

// Of a half or both halves of a block, from the first code of the first half on: the entries of a nibble are as many as
// a register holds. Sums stay below 2^32.
template <std::size_t halves>
inline void sums_of_halves(const ExactTables& exact, const std::uint8_t* codes, std::uint32_t* out) {
  __m512i high[halves], low[halves];
  for (std::size_t h = 0; h < halves; ++h) high[h] = low[h] = _mm512_setzero_si512();
  const auto add = [&](const std::uint8_t* byte, const std::int32_t* entries) {
    const __m512i of_high = _mm512_loadu_si512(entries), of_low = _mm512_loadu_si512(entries + 16);
    for (std::size_t h = 0; h < halves; ++h) {
      // A look-up reads the lowest four bits of its place.
      const __m512i places = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(byte + 16 * h)));
      high[h] = _mm512_add_epi32(high[h], _mm512_permutexvar_epi32(_mm512_srli_epi32(places, 4), of_high));
      low[h] = _mm512_add_epi32(low[h], _mm512_permutexvar_epi32(places, of_low));
    }
  };
  const std::size_t last = exact.bytes() - 1;
  for (std::size_t j = 0; j < last; ++j) add(codes + j * scan_block, exact.tables() + 32 * j);
  add(codes + last * scan_block, exact.last_byte());
  for (std::size_t h = 0; h < halves; ++h) _mm512_storeu_si512(out + 16 * h, _mm512_add_epi32(high[h], low[h]));
}

// Of 16 codes, wherever they stand: the entries of a nibble are as many as a register holds. Sums stay below 2^32.
inline void sums_of_sixteen(const ExactTables& exact, const Codes& codes, std::size_t first_place,
                            const std::uint32_t* places, std::uint32_t* out) {
  constexpr std::size_t part = 64;  // bytes of a code that are brought together
  alignas(64) std::uint8_t bytes[part][16];
  const std::uint8_t* starts[16];
  const std::uint8_t* blocks = codes.blocks + first_place * codes.bytes;
  for (std::size_t i = 0; i < 16; ++i)
    starts[i] = blocks + std::size_t{places[i] / scan_block} * scan_block * codes.bytes + places[i] % scan_block;
  __m512i sum = _mm512_setzero_si512();
  for (std::size_t first = 0; first < codes.bytes; first += part) {
    const std::size_t count = std::min(part, codes.bytes - first);
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < count; ++j) bytes[j][i] = starts[i][(first + j) * scan_block];
    for (std::size_t j = 0; j < count; ++j) {
      const bool last = first + j + 1 == codes.bytes;
      const std::int32_t* entries = last ? exact.last_byte() : exact.tables() + 32 * (first + j);
      // A look-up reads the lowest four bits of its place.
      const __m512i low = _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes[j])));
      const __m512i high = _mm512_srli_epi32(low, 4);
      sum = _mm512_add_epi32(sum, _mm512_permutexvar_epi32(high, _mm512_loadu_si512(entries)));
      sum = _mm512_add_epi32(sum, _mm512_permutexvar_epi32(low, _mm512_loadu_si512(entries + 16)));
    }
  }
  _mm512_storeu_si512(out, sum);
}

// Those of a half that has several by halves, the others 16 at a time.
inline void sums_together(const ExactTables& exact, const Codes& codes, std::size_t first, const std::uint32_t* places,
                          std::size_t count, double* out) {
  constexpr std::size_t several = 2, most = 16;
  std::uint32_t alone[most], sums[32];
  std::size_t numbers[most], left = 0;
  const auto score_alone = [&] {
    for (std::size_t i = left; i < most; ++i) alone[i] = alone[0];
    sums_of_sixteen(exact, codes, first, alone, sums);
    for (std::size_t i = 0; i < left; ++i) out[numbers[i]] = sums[i];
    left = 0;
  };
  for (std::size_t i = 0, end; i < count; i = end) {
    const std::uint32_t half = places[i] / 16;
    for (end = i + 1; end < count && places[end] / 16 == half;) ++end;
    if (end - i >= several) {
      const std::uint8_t* block = codes.blocks + (first + places[i]) / scan_block * scan_block * codes.bytes;
      sums_of_halves<1>(exact, block + half % 2 * 16, sums);
      for (std::size_t j = i; j < end; ++j) out[j] = sums[places[j] % 16];
      continue;
    }
    for (std::size_t j = i; j < end; ++j) {
      alone[left] = places[j];
      numbers[left] = j;
      if (++left == most) score_alone();
    }
  }
  if (left >= 4) score_alone();
  for (std::size_t i = 0; i < left; ++i) out[numbers[i]] = static_cast<double>(exact.sum(first + alone[i]));
}
#else
constexpr bool together_cheap = false;
#endif

// Of all codes of a block.
inline void block_sums(const ExactTables& exact, const Codes& codes, std::size_t block, double* out) {
#ifdef ANTISPARSE_TARGET_AVX512
  if (exact.most() < std::int64_t{1} << 32) {
    std::uint32_t sums[scan_block];
    sums_of_halves<2>(exact, codes.blocks + block * scan_block * codes.bytes, sums);
    std::copy_n(sums, scan_block, out);
    return;
  }
#endif
  const std::size_t held = std::min(scan_block, codes.places - block * scan_block);
  for (std::size_t i = 0; i < held; ++i) out[i] = static_cast<double>(exact.sum(block * scan_block + i));
}

// Of the codes at places after the first one, which begins a block, in ascending order.
inline void exact_sums(const ExactTables& exact, [[maybe_unused]] const Codes& codes, std::size_t first,
                       const std::uint32_t* places, std::size_t count, double* out) {
  std::size_t i = 0;
#ifdef ANTISPARSE_TARGET_AVX512
  if (exact.most() < std::int64_t{1} << 32) {
    sums_together(exact, codes, first, places, count, out);
    return;
  }
#endif
  for (; i < count; ++i) out[i] = static_cast<double>(exact.sum(first + places[i]));
}

}  // namespace antisparse::ANTISPARSE_ISA
