// The costs of two codebooks in a vector, by AVX-512: see sixteen.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/aligned.hpp"

namespace antisparse::ANTISPARSE_ISA {

struct ThirtyTwo {
  __m512i v;
  static ThirtyTwo load(const std::int16_t* p) { return {_mm512_loadu_si512(p)}; }
  static ThirtyTwo all(int x) { return {_mm512_set1_epi16(static_cast<short>(x))}; }
  void store(std::int16_t* p) const { _mm512_storeu_si512(p, v); }
  friend ThirtyTwo operator+(ThirtyTwo a, ThirtyTwo b) { return {_mm512_add_epi16(a.v, b.v)}; }
  friend ThirtyTwo operator-(ThirtyTwo a, ThirtyTwo b) { return {_mm512_subs_epi16(a.v, b.v)}; }
  friend ThirtyTwo max(ThirtyTwo a, ThirtyTwo b) { return {_mm512_max_epi16(a.v, b.v)}; }
};

class LeastThirtyTwo {
 public:
  void offer(ThirtyTwo value, ThirtyTwo group) {
    group_ = _mm512_mask_mov_epi16(group_, _mm512_cmpgt_epi16_mask(low_, value.v), group.v);
    low_ = _mm512_min_epi16(low_, value.v);
  }
  std::int32_t value() const { return key() >> 16; }
  std::size_t where() const { return static_cast<std::size_t>(key() & 0xffff); }

 private:
  // The value in the high 16 bits, its number in the low ones.
  std::int32_t key() const {
    alignas(64) static constexpr std::int16_t places[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                          11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                          22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    const __m512i at = _mm512_add_epi16(_mm512_slli_epi16(group_, 5), _mm512_load_si512(places));
    return _mm512_reduce_min_epi32(_mm512_min_epi32(_mm512_unpacklo_epi16(at, low_), _mm512_unpackhi_epi16(at, low_)));
  }

  __m512i low_ = _mm512_set1_epi16(INT16_MAX), group_ = _mm512_setzero_si512();
};

template <>
class Chosen<std::int16_t> {
 public:
  static constexpr std::size_t books = 2;
  using Costs = ThirtyTwo;
  using Least = LeastThirtyTwo;
  struct View {
    const std::int16_t* places;
    Costs costs(Costs costs, const std::int16_t*, std::size_t book) const {
      return {_mm512_permutexvar_epi16(Costs::load(places + 16 * book).v, costs.v)};
    }
  };

  explicit Chosen(std::size_t count) : columns_(count), places_(16 * (count + 1)) {}
  std::size_t operator[](std::size_t book) const { return columns_[book]; }
  void set(std::size_t book, std::size_t column) {
    columns_[book] = column;
    // The low five bits of a column are its place among those of two codebooks.
    Sixteen<std::int16_t>::all(static_cast<int>(column)).store(&places_[16 * book]);
  }
  View view() const { return {places_.data()}; }

 private:
  std::vector<std::size_t> columns_;
  Aligned<std::int16_t> places_;  // of all 16 columns of a codebook the one chosen
};

}  // namespace antisparse::ANTISPARSE_ISA
