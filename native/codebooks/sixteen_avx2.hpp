// Sixteen<int16_t> by AVX2: see sixteen.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace antisparse::ANTISPARSE_ISA {

template <>
struct Sixteen<std::int16_t> {
  __m256i v;
  static Sixteen load(const std::int16_t* p) { return {_mm256_load_si256(reinterpret_cast<const __m256i*>(p))}; }
  static Sixteen all(int x) { return {_mm256_set1_epi16(static_cast<short>(x))}; }
  void store(std::int16_t* p) const { _mm256_store_si256(reinterpret_cast<__m256i*>(p), v); }
  friend Sixteen operator+(Sixteen a, Sixteen b) { return {_mm256_add_epi16(a.v, b.v)}; }
  friend Sixteen operator-(Sixteen a, Sixteen b) { return {_mm256_subs_epi16(a.v, b.v)}; }
  friend Sixteen max(Sixteen a, Sixteen b) { return {_mm256_max_epi16(a.v, b.v)}; }
};

template <>
class LeastSixteen<std::int16_t> {
 public:
  using Integers = Sixteen<std::int16_t>;
  void offer(Integers value, Integers group) {
    group_ = _mm256_blendv_epi8(group_, group.v, _mm256_cmpgt_epi16(low_, value.v));
    low_ = _mm256_min_epi16(low_, value.v);
  }
  std::int32_t value() const { return key() >> 16; }
  std::size_t where() const { return static_cast<std::size_t>(key() & 0xffff); }

 private:
  // The value in the high 16 bits, its number in the low ones.
  std::int32_t key() const {
    const __m256i place = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m256i at = _mm256_add_epi16(_mm256_slli_epi16(group_, 4), place);
    const __m256i both = _mm256_min_epi32(_mm256_unpacklo_epi16(at, low_), _mm256_unpackhi_epi16(at, low_));
    __m128i r = _mm_min_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    r = _mm_min_epi32(r, _mm_shuffle_epi32(r, 0x4e));
    r = _mm_min_epi32(r, _mm_shuffle_epi32(r, 0xb1));
    return _mm_cvtsi128_si32(r);
  }

  __m256i low_ = _mm256_set1_epi16(INT16_MAX), group_ = _mm256_setzero_si256();
};

}  // namespace antisparse::ANTISPARSE_ISA
