// Pack<T> for any CPU: see simd.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__GNUC__) && !(defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF))
#define ANTISPARSE_FUSED 1
#include "machine/fused.hpp"
#endif

namespace antisparse::ANTISPARSE_ISA {

#ifdef __GNUC__

// Two 16-byte vectors of the compiler's own, which every CPU it targets has in some form.
template <class T>
struct Pack {
  static constexpr std::size_t lanes = 32 / sizeof(T), half = lanes / 2;
  using Int = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef T Half __attribute__((vector_size(16)));
  typedef Int Bits __attribute__((vector_size(16)));
  Half low, high;
  static Pack load(const T* p) {
    const Half* halves = reinterpret_cast<const Half*>(p);
    return {halves[0], halves[1]};
  }
  static Pack all(T x) { return {x - Half{}, x - Half{}}; }
  static Pack count() {
    Pack r{};
    for (std::size_t i = 0; i < half; ++i) {
      r.low[i] = static_cast<T>(i);
      r.high[i] = static_cast<T>(half + i);
    }
    return r;
  }
  void store(T* p) const {
    Half* halves = reinterpret_cast<Half*>(p);
    halves[0] = low;
    halves[1] = high;
  }
  friend Pack operator+(Pack a, Pack b) { return {a.low + b.low, a.high + b.high}; }
  friend Pack operator-(Pack a, Pack b) { return {a.low - b.low, a.high - b.high}; }
  friend Pack operator*(Pack a, Pack b) { return {a.low * b.low, a.high * b.high}; }
  friend Pack operator/(Pack a, Pack b) { return {a.low / b.low, a.high / b.high}; }
  friend Pack operator<(Pack a, Pack b) { return {(Half)(a.low < b.low), (Half)(a.high < b.high)}; }
  friend Pack fma(Pack a, Pack b, Pack c) { return {once(a.low, b.low, c.low), once(a.high, b.high, c.high)}; }
  friend Pack min(Pack a, Pack b) { return {lesser(a.low, b.low), lesser(a.high, b.high)}; }
  friend Pack abs(Pack a) {
    const Bits sign = (Bits)all(T(-0.0)).low;
    return {(Half)((Bits)a.low & ~sign), (Half)((Bits)a.high & ~sign)};
  }
  friend Pack select(Pack mask, Pack yes, Pack no) {
    return {choose((Bits)mask.low, yes.low, no.low), choose((Bits)mask.high, yes.high, no.high)};
  }
  friend T sum(Pack a) {
    const Half r = a.low + a.high;
    if constexpr (half == 2)
      return r[0] + r[1];
    else
      return (r[0] + r[2]) + (r[1] + r[3]);
  }
  friend T least(Pack a) {
    const auto less = [](T x, T y) { return x < y ? x : y; };
    const Half r = lesser(a.low, a.high);
    if constexpr (half == 2)
      return less(r[0], r[1]);
    else
      return less(less(r[0], r[2]), less(r[1], r[3]));
  }

 private:
  static Half choose(Bits mask, Half yes, Half no) { return (Half)((mask & (Bits)yes) | (~mask & (Bits)no)); }
  static Half lesser(Half a, Half b) { return choose(a < b, a, b); }
  static Half once(Half a, Half b, Half c) {
#ifdef ANTISPARSE_FUSED
    return fused(a, b, c);
#else
    Half r;
    for (std::size_t i = 0; i < half; ++i) r[i] = std::fma(a[i], b[i], c[i]);
    return r;
#endif
  }
};

#else

// Loops of fixed length, for compilers without vector types.
template <class T>
struct Pack {
  static constexpr std::size_t lanes = 32 / sizeof(T);
  T v[lanes];
  template <class F>
  static Pack each(F f) {
    Pack r;
    for (std::size_t i = 0; i < lanes; ++i) r.v[i] = f(i);
    return r;
  }
  static Pack load(const T* p) {
    return each([&](std::size_t i) { return p[i]; });
  }
  static Pack all(T x) {
    return each([&](std::size_t) { return x; });
  }
  static Pack count() {
    return each([](std::size_t i) { return static_cast<T>(i); });
  }
  void store(T* p) const {
    for (std::size_t i = 0; i < lanes; ++i) p[i] = v[i];
  }
  friend Pack operator+(Pack a, Pack b) {
    return each([&](std::size_t i) { return a.v[i] + b.v[i]; });
  }
  friend Pack operator-(Pack a, Pack b) {
    return each([&](std::size_t i) { return a.v[i] - b.v[i]; });
  }
  friend Pack operator*(Pack a, Pack b) {
    return each([&](std::size_t i) { return a.v[i] * b.v[i]; });
  }
  friend Pack operator/(Pack a, Pack b) {
    return each([&](std::size_t i) { return a.v[i] / b.v[i]; });
  }
  friend Pack operator<(Pack a, Pack b) {
    return each([&](std::size_t i) { return a.v[i] < b.v[i] ? T(1) : T(0); });
  }
  friend Pack fma(Pack a, Pack b, Pack c) {
    return each([&](std::size_t i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
  }
  friend Pack min(Pack a, Pack b) {
    return each([&](std::size_t i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  friend Pack abs(Pack a) {
    return each([&](std::size_t i) { return std::fabs(a.v[i]); });
  }
  friend Pack select(Pack mask, Pack yes, Pack no) {
    return each([&](std::size_t i) { return mask.v[i] != T(0) ? yes.v[i] : no.v[i]; });
  }
  // Halves upon each other, as the other instruction sets add them up.
  template <class F>
  static T fold(Pack a, F f) {
    for (std::size_t n = lanes / 2; n > 0; n /= 2)
      for (std::size_t i = 0; i < n; ++i) a.v[i] = f(a.v[i], a.v[i + n]);
    return a.v[0];
  }
  friend T sum(Pack a) {
    return fold(a, [](T x, T y) { return x + y; });
  }
  friend T least(Pack a) {
    return fold(a, [](T x, T y) { return x < y ? x : y; });
  }
};

#endif

}  // namespace antisparse::ANTISPARSE_ISA
