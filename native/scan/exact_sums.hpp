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
// Of 16 codes at a time: the entries of a nibble are as many as a register holds. Sums stay below 2^32.
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
#endif

// Of the codes at places after the first one, which begins a block.
inline void exact_sums(const ExactTables& exact, [[maybe_unused]] const Codes& codes, std::size_t first,
                       const std::uint32_t* places, std::size_t count, std::int64_t* out) {
  std::size_t i = 0;
#ifdef ANTISPARSE_TARGET_AVX512
  if (exact.most() < std::int64_t{1} << 32)
    for (; i < count; i += 16) {
      std::uint32_t these[16], sums[16];
      const std::size_t some = std::min<std::size_t>(16, count - i);
      if (some < 8) break;
      for (std::size_t j = 0; j < 16; ++j) these[j] = places[i + std::min(j, some - 1)];
      sums_of_sixteen(exact, codes, first, these, sums);
      std::copy_n(sums, some, out + i);
    }
#endif
  for (; i < count; ++i) out[i] = exact.sum(first + places[i]);
}

}  // namespace antisparse::ANTISPARSE_ISA
