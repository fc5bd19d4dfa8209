// Sixteen: 16 integers of 16 bits, the costs of a group's words. Included as simd.hpp is, once per instruction set.
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including sixteen.hpp"
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#ifdef ANTISPARSE_TARGET_AVX2
#include <immintrin.h>
#endif

namespace antisparse::ANTISPARSE_ISA {

#ifdef ANTISPARSE_TARGET_AVX2

struct Sixteen {
  __m256i v;
  static Sixteen load(const std::int16_t* p) { return {_mm256_load_si256(reinterpret_cast<const __m256i*>(p))}; }
  static Sixteen all(int x) { return {_mm256_set1_epi16(static_cast<short>(x))}; }
  void store(std::int16_t* p) const { _mm256_store_si256(reinterpret_cast<__m256i*>(p), v); }
  friend Sixteen operator+(Sixteen a, Sixteen b) { return {_mm256_add_epi16(a.v, b.v)}; }
  friend Sixteen operator-(Sixteen a, Sixteen b) { return {_mm256_subs_epi16(a.v, b.v)}; }  // as far as there is room
  friend Sixteen max(Sixteen a, Sixteen b) { return {_mm256_max_epi16(a.v, b.v)}; }
};

// The least of all values offered, in groups of 16, and its number: the first of equals.
class LeastSixteen {
 public:
  void offer(Sixteen value, Sixteen group) {
    group_ = _mm256_blendv_epi8(group_, group.v, _mm256_cmpgt_epi16(low_, value.v));
    low_ = _mm256_min_epi16(low_, value.v);
  }
  std::int32_t least() const { return key() >> 16; }
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
struct Sixteen {
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
struct Sixteen {
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

inline Sixteen max(Sixteen a, Sixteen b) { return select(a < b, b, a); }

class LeastSixteen {
 public:
  void offer(Sixteen value, Sixteen group) {
    const Sixteen lower = value < low_;
    group_ = select(lower, group, group_);
    low_ = select(lower, value, low_);
  }
  std::int32_t least() const { return key() >> 16; }
  std::size_t where() const { return static_cast<std::size_t>(key() & 0xffff); }

 private:
  std::int32_t key() const {
    std::int32_t least = INT32_MAX;
    for (std::size_t i = 0; i < Sixteen::size; ++i)
      least = std::min(least, low_[i] * 65536 + group_[i] * 16 + static_cast<int>(i));
    return least;
  }

  Sixteen low_ = Sixteen::all(INT16_MAX), group_ = Sixteen::all(0);
};

#endif

}  // namespace antisparse::ANTISPARSE_ISA
