// The least of many values: a bound on the k-th, and which are within it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#ifdef ANTISPARSE_TARGET_AVX2
#include <immintrin.h>
#elif defined(ANTISPARSE_TARGET_NEON)
#include "machine/mask_neon.hpp"
#endif

namespace antisparse::ANTISPARSE_ISA {

// No less than the k-th least of some values, and close to it; infinity where there are fewer than k.
inline float bound_kth_least(const float* values, std::size_t size, std::size_t k, std::vector<float>& folded) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (size < k) return infinity;
  if (folded.size() < size) folded.resize(size);
  if (size < 4 * k) std::copy_n(values, size, folded.data());
  // The less of each pair, again and again: the k-th least of those left is that of some k values or more.
  for (; size >= 4 * k; values = folded.data()) {
    const std::size_t half = size / 2;
    if (size % 2) folded[half] = values[half];  // which has no other
    for (std::size_t i = 0; i < half; ++i) folded[i] = std::min(values[i], values[size - half + i]);
    size -= half;
  }
  if (size > 128) {
    std::nth_element(folded.data(), folded.data() + (k - 1), folded.data() + size);
    return folded[k - 1];
  }
  // Of few, the least that k are not above: no branch depends on the values.
  std::uint32_t below[128];
  std::fill_n(below, size, 0);
  for (std::size_t j = 0; j < size; ++j)
    for (std::size_t i = 0; i < size; ++i) below[i] += folded[j] <= folded[i];
  float least = infinity;
  for (std::size_t i = 0; i < size; ++i) least = std::min(least, below[i] >= k ? folded[i] : infinity);
  return least;
}

inline int trailing_zeros(std::uint32_t mask) {
#ifdef __GNUC__
  return __builtin_ctz(mask);
#else
  int count = 0;
  while (!(mask >> count & 1)) ++count;
  return count;
#endif
}

// Which of 32 values are at most `most`.
#ifdef ANTISPARSE_TARGET_AVX2
inline std::uint32_t at_most(const float* values, float most) {
  std::uint32_t mask = 0;
  for (int p = 0; p < 4; ++p) {
    const __m256 below = _mm256_cmp_ps(_mm256_loadu_ps(values + 8 * p), _mm256_set1_ps(most), _CMP_LE_OQ);
    mask |= static_cast<std::uint32_t>(_mm256_movemask_ps(below)) << 8 * p;
  }
  return mask;
}
#elif defined(ANTISPARSE_TARGET_NEON)
inline std::uint32_t at_most(const float* values, float most) {
  const auto four = [&](int p) { return vmovn_u32(vcleq_f32(vld1q_f32(values + 4 * p), vdupq_n_f32(most))); };
  const auto sixteen = [&](int p) {
    return vcombine_u8(vmovn_u16(vcombine_u16(four(p), four(p + 1))),
                       vmovn_u16(vcombine_u16(four(p + 2), four(p + 3))));
  };
  return mask_of(sixteen(0), sixteen(4));
}
#else
inline std::uint32_t at_most(const float* values, float most) {
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < 32; ++i) mask |= static_cast<std::uint32_t>(values[i] <= most) << i;
  return mask;
}
#endif

}  // namespace antisparse::ANTISPARSE_ISA
