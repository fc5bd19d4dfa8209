// Which codes passed, from masks of their blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "scan/codes.hpp"
#include "scan/select.hpp"

#ifdef ANTISPARSE_TARGET_AVX512
#include <immintrin.h>
#endif

namespace antisparse::ANTISPARSE_ISA {

inline int set_bits(std::uint32_t mask) {
#ifdef __GNUC__
  return __builtin_popcount(mask);
#else
  int count = 0;
  for (; mask; mask &= mask - 1) ++count;
  return count;
#endif
}

// Whether eight masks are all zero, as nearly all are.
inline bool none(const std::uint32_t* masks) {
  std::uint64_t pairs[4];
  std::memcpy(pairs, masks, sizeof pairs);
  return (pairs[0] | pairs[1] | pairs[2] | pairs[3]) == 0;
}

// Lists the blocks whose mask is not zero, and returns how many there are. `out` has room for 16 more than that.
// No branch depends on a mask alone, since which are zero cannot be predicted.
inline std::size_t blocks_that_passed(const std::uint32_t* masks, std::size_t count, std::uint32_t* out) {
  std::size_t found = 0, b = 0;
#ifdef ANTISPARSE_TARGET_AVX512
  __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (; b + 16 <= count; b += 16, numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(16))) {
    const __m512i some = _mm512_loadu_si512(masks + b);
    const __mmask16 passed = _mm512_test_epi32_mask(some, some);
    _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi32(passed, numbers));
    found += static_cast<std::size_t>(set_bits(passed));
  }
#endif
  while (b < count) {
    while (b + 8 <= count && none(masks + b)) b += 8;
    for (const std::size_t end = b + 8 < count ? b + 8 : count; b < end; ++b) {
      out[found] = static_cast<std::uint32_t>(b);
      found += masks[b] != 0;
    }
  }
  return found;
}

// Lists the places of a block that passed, the first of which is `start`; `out` has room for 32 and, of AVX-512, 16
// more.
inline std::size_t places_that_passed(std::uint32_t mask, std::uint32_t start, std::uint32_t* out) {
#ifdef ANTISPARSE_TARGET_AVX512
  const __m512i low = _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                       _mm512_set1_epi32(static_cast<int>(start)));
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(16));
  const int first = set_bits(mask & 0xFFFF);
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), low));
  _mm512_storeu_si512(out + first, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask >> 16), high));
  return static_cast<std::size_t>(first + set_bits(mask >> 16));
#else
  std::size_t found = 0;
  for (; mask; mask &= mask - 1) out[found++] = start + static_cast<std::uint32_t>(trailing_zeros(mask));
  return found;
#endif
}

}  // namespace antisparse::ANTISPARSE_ISA
