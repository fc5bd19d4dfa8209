// Sixteen<T>: 16 floats or integers of 16 bits, the costs of a codebook's codewords, and the least of many such.
// Included as simd.hpp is, once per instruction set.
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including codebooks/sixteen.hpp"
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "machine/simd.hpp"

#ifdef ANTISPARSE_TARGET_AVX2
#include <immintrin.h>
#endif

namespace antisparse::ANTISPARSE_ISA {

// Sums of integers must fit; differences are as far as they do.
template <class T>
struct Sixteen;

// The least of all values offered, in groups of 16, and its number: the first of equals. What is not below the largest
// of T is none.
template <class T>
class LeastSixteen;

template <>
struct Sixteen<float> {
  using P = Pack<float>;
  static constexpr std::size_t packs = 16 / P::lanes;
  P v[packs];
  template <class F>
  static Sixteen each(F f) {
    Sixteen r;
    for (std::size_t p = 0; p < packs; ++p) r.v[p] = f(p);
    return r;
  }
  static Sixteen load(const float* p) {
    return each([&](std::size_t i) { return P::load(p + i * P::lanes); });
  }
  static Sixteen all(float x) {
    return each([&](std::size_t) { return P::all(x); });
  }
  void store(float* p) const {
    for (std::size_t i = 0; i < packs; ++i) v[i].store(p + i * P::lanes);
  }
  friend Sixteen operator+(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return a.v[i] + b.v[i]; });
  }
  friend Sixteen operator-(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return a.v[i] - b.v[i]; });
  }
  friend Sixteen max(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return select(a.v[i] < b.v[i], b.v[i], a.v[i]); });
  }
};

template <>
class LeastSixteen<float> {
 public:
  void offer(Sixteen<float> value, Sixteen<float> group) {
    for (std::size_t p = 0; p < Sixteen<float>::packs; ++p) {
      group_.v[p] = select(value.v[p] < low_.v[p], group.v[p], group_.v[p]);
      low_.v[p] = min(value.v[p], low_.v[p]);
    }
  }
  float value() const {
    float lowest = std::numeric_limits<float>::max();
    for (const Pack<float> low : low_.v) lowest = std::min(lowest, least(low));
    return lowest;
  }
  std::size_t where() const {
    alignas(64) float low[16], group[16];
    low_.store(low);
    group_.store(group);
    std::size_t best = 0;
    for (std::size_t i = 1; i < 16; ++i)
      if (low[i] < low[best] || (low[i] == low[best] && group[i] < group[best])) best = i;
    return 16 * static_cast<std::size_t>(group[best]) + best;
  }

 private:
  Sixteen<float> low_ = Sixteen<float>::all(std::numeric_limits<float>::max()), group_ = Sixteen<float>::all(0);
};

#ifdef ANTISPARSE_TARGET_AVX2

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

#elif defined(__GNUC__)

// Two 16-byte vectors of the compiler's own, as in simd.hpp.
template <>
struct Sixteen<std::int16_t> {
  static constexpr std::size_t size = 16;
  typedef std::int16_t Lanes __attribute__((vector_size(16)));
  Lanes v[2];
  static Sixteen load(const std::int16_t* p) {
    const Lanes* halves = reinterpret_cast<const Lanes*>(p);
    return {{halves[0], halves[1]}};
  }
  static Sixteen all(int x) {
    const Lanes lanes = static_cast<std::int16_t>(x) - Lanes{};
    return {{lanes, lanes}};
  }
  void store(std::int16_t* p) const {
    Lanes* halves = reinterpret_cast<Lanes*>(p);
    halves[0] = v[0];
    halves[1] = v[1];
  }
  std::int16_t operator[](std::size_t i) const { return v[i / 8][i % 8]; }
  friend Sixteen operator+(Sixteen a, Sixteen b) { return {{a.v[0] + b.v[0], a.v[1] + b.v[1]}}; }
  friend Sixteen operator-(Sixteen a, Sixteen b) { return {{less(a.v[0], b.v[0]), less(a.v[1], b.v[1])}}; }
  friend Sixteen operator<(Sixteen a, Sixteen b) { return {{a.v[0] < b.v[0], a.v[1] < b.v[1]}}; }
  // Where the mask is set yes, elsewhere no.
  friend Sixteen select(Sixteen mask, Sixteen yes, Sixteen no) {
    return {{choose(mask.v[0], yes.v[0], no.v[0]), choose(mask.v[1], yes.v[1], no.v[1])}};
  }

 private:
  static Lanes choose(Lanes mask, Lanes yes, Lanes no) { return (mask & yes) | (~mask & no); }
  static Lanes less(Lanes a, Lanes b) {
    typedef std::uint16_t Bits __attribute__((vector_size(16)));
    const Lanes difference = (Lanes)((Bits)a - (Bits)b), beyond = ((a ^ b) & (a ^ difference)) >> 15;
    return choose(beyond, (a >> 15) ^ INT16_MAX, difference);
  }
};

#else

// Loops of fixed length, for compilers without vector types.
template <>
struct Sixteen<std::int16_t> {
  static constexpr std::size_t size = 16;
  std::int16_t v[size];
  template <class F>
  static Sixteen each(F f) {
    Sixteen r;
    for (std::size_t i = 0; i < size; ++i) r.v[i] = static_cast<std::int16_t>(f(i));
    return r;
  }
  static Sixteen load(const std::int16_t* p) {
    return each([&](std::size_t i) { return p[i]; });
  }
  static Sixteen all(int x) {
    return each([&](std::size_t) { return x; });
  }
  void store(std::int16_t* p) const { std::copy_n(v, size, p); }
  std::int16_t operator[](std::size_t i) const { return v[i]; }
  friend Sixteen operator+(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return a.v[i] + b.v[i]; });
  }
  friend Sixteen operator-(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return std::clamp<int>(a.v[i] - b.v[i], INT16_MIN, INT16_MAX); });
  }
  friend Sixteen operator<(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return a.v[i] < b.v[i] ? -1 : 0; });
  }
  friend Sixteen select(Sixteen mask, Sixteen yes, Sixteen no) {
    return each([&](std::size_t i) { return mask.v[i] ? yes.v[i] : no.v[i]; });
  }
};

#endif

#ifndef ANTISPARSE_TARGET_AVX2

inline Sixteen<std::int16_t> max(Sixteen<std::int16_t> a, Sixteen<std::int16_t> b) { return select(a < b, b, a); }

template <>
class LeastSixteen<std::int16_t> {
 public:
  using Integers = Sixteen<std::int16_t>;
  void offer(Integers value, Integers group) {
    const Integers lower = value < low_;
    group_ = select(lower, group, group_);
    low_ = select(lower, value, low_);
  }
  std::int32_t value() const { return key() >> 16; }
  std::size_t where() const { return static_cast<std::size_t>(key() & 0xffff); }

 private:
  std::int32_t key() const {
    std::int32_t least = INT32_MAX;
    for (std::size_t i = 0; i < Integers::size; ++i)
      least = std::min(least, low_[i] * 65536 + group_[i] * 16 + static_cast<int>(i));
    return least;
  }

  Integers low_ = Integers::all(INT16_MAX), group_ = Integers::all(0);
};

#endif

}  // namespace antisparse::ANTISPARSE_ISA
