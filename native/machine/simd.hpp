// Pack<T>: a short vector of floats or doubles. Included by one translation unit per instruction set, inside the
// namespace ANTISPARSE_ISA, so that no inline function compiled for AVX2 is ever linked into the portable code.
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including machine/simd.hpp"
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifdef ANTISPARSE_TARGET_AVX2
#include <immintrin.h>
#endif

namespace antisparse::ANTISPARSE_ISA {

template <class T>
struct Pack;

#ifdef ANTISPARSE_TARGET_AVX2

template <>
struct Pack<float> {
  static constexpr std::size_t lanes = 8;
  __m256 v;
  static Pack load(const float* p) { return {_mm256_load_ps(p)}; }
  static Pack all(float x) { return {_mm256_set1_ps(x)}; }
  static Pack count() { return {_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7)}; }
  void store(float* p) const { _mm256_store_ps(p, v); }
  friend Pack operator+(Pack a, Pack b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend Pack operator-(Pack a, Pack b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend Pack operator*(Pack a, Pack b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend Pack operator/(Pack a, Pack b) { return {_mm256_div_ps(a.v, b.v)}; }
  friend Pack operator<(Pack a, Pack b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
  friend Pack fma(Pack a, Pack b, Pack c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  friend Pack fms(Pack a, Pack b, Pack c) { return {_mm256_fmsub_ps(a.v, b.v, c.v)}; }  // a b - c
  friend Pack min(Pack a, Pack b) { return {_mm256_min_ps(a.v, b.v)}; }                 // b where there is no order
  friend Pack abs(Pack a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
  // Where the mask is set yes, elsewhere no.
  friend Pack select(Pack mask, Pack yes, Pack no) { return {_mm256_blendv_ps(no.v, yes.v, mask.v)}; }
  // The lanes' total and their least.
  friend float sum(Pack a) {
    __m128 r = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    r = _mm_add_ps(r, _mm_movehl_ps(r, r));
    return _mm_cvtss_f32(_mm_add_ss(r, _mm_movehdup_ps(r)));
  }
  friend float least(Pack a) {
    __m128 r = _mm_min_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    r = _mm_min_ps(r, _mm_movehl_ps(r, r));
    return _mm_cvtss_f32(_mm_min_ss(r, _mm_movehdup_ps(r)));
  }
};

template <>
struct Pack<double> {
  static constexpr std::size_t lanes = 4;
  __m256d v;
  static Pack load(const double* p) { return {_mm256_load_pd(p)}; }
  static Pack all(double x) { return {_mm256_set1_pd(x)}; }
  static Pack count() { return {_mm256_setr_pd(0, 1, 2, 3)}; }
  void store(double* p) const { _mm256_store_pd(p, v); }
  friend Pack operator+(Pack a, Pack b) { return {_mm256_add_pd(a.v, b.v)}; }
  friend Pack operator-(Pack a, Pack b) { return {_mm256_sub_pd(a.v, b.v)}; }
  friend Pack operator*(Pack a, Pack b) { return {_mm256_mul_pd(a.v, b.v)}; }
  friend Pack operator/(Pack a, Pack b) { return {_mm256_div_pd(a.v, b.v)}; }
  friend Pack operator<(Pack a, Pack b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_LT_OQ)}; }
  friend Pack fma(Pack a, Pack b, Pack c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
  friend Pack abs(Pack a) { return {_mm256_andnot_pd(_mm256_set1_pd(-0.0), a.v)}; }
  friend Pack select(Pack mask, Pack yes, Pack no) { return {_mm256_blendv_pd(no.v, yes.v, mask.v)}; }
  friend double sum(Pack a) {
    __m128d r = _mm_add_pd(_mm256_castpd256_pd128(a.v), _mm256_extractf128_pd(a.v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(r, _mm_unpackhi_pd(r, r)));
  }
  friend double least(Pack a) {
    __m128d r = _mm_min_pd(_mm256_castpd256_pd128(a.v), _mm256_extractf128_pd(a.v, 1));
    return _mm_cvtsd_f64(_mm_min_sd(r, _mm_unpackhi_pd(r, r)));
  }
};

#elif defined(__GNUC__)

// 16-byte vectors of the compiler's own, which every CPU it targets has in some form.
template <class T>
struct Pack {
  static constexpr std::size_t lanes = 16 / sizeof(T);
  using Int = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef T Lanes __attribute__((vector_size(16)));
  typedef Int Bits __attribute__((vector_size(16)));
  Lanes v;
  static Pack load(const T* p) { return {*reinterpret_cast<const Lanes*>(p)}; }
  static Pack all(T x) { return {x - Lanes{}}; }
  static Pack count() {
    Pack r{};
    for (std::size_t i = 0; i < lanes; ++i) r.v[i] = static_cast<T>(i);
    return r;
  }
  void store(T* p) const { *reinterpret_cast<Lanes*>(p) = v; }
  friend Pack operator+(Pack a, Pack b) { return {a.v + b.v}; }
  friend Pack operator-(Pack a, Pack b) { return {a.v - b.v}; }
  friend Pack operator*(Pack a, Pack b) { return {a.v * b.v}; }
  friend Pack operator/(Pack a, Pack b) { return {a.v / b.v}; }
  friend Pack operator<(Pack a, Pack b) { return {(Lanes)(a.v < b.v)}; }
  friend Pack fma(Pack a, Pack b, Pack c) { return {a.v * b.v + c.v}; }
  friend Pack fms(Pack a, Pack b, Pack c) { return {a.v * b.v - c.v}; }
  friend Pack min(Pack a, Pack b) { return select(a < b, a, b); }
  friend Pack abs(Pack a) { return {(Lanes)((Bits)a.v & ~(Bits)(all(T(-0.0)).v))}; }
  friend Pack select(Pack mask, Pack yes, Pack no) {
    return {(Lanes)(((Bits)mask.v & (Bits)yes.v) | (~(Bits)mask.v & (Bits)no.v))};
  }
  friend T sum(Pack a) {
    T total = a.v[0];
    for (std::size_t i = 1; i < lanes; ++i) total += a.v[i];
    return total;
  }
  friend T least(Pack a) {
    T value = a.v[0];
    for (std::size_t i = 1; i < lanes; ++i) value = a.v[i] < value ? a.v[i] : value;
    return value;
  }
};

#else

// Fixed-length loops over 16 bytes, for compilers without vector types.
template <class T>
struct Pack {
  static constexpr std::size_t lanes = 16 / sizeof(T);
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
    return each([&](std::size_t i) { return a.v[i] * b.v[i] + c.v[i]; });
  }
  friend Pack fms(Pack a, Pack b, Pack c) {
    return each([&](std::size_t i) { return a.v[i] * b.v[i] - c.v[i]; });
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
  friend T sum(Pack a) {
    T total = a.v[0];
    for (std::size_t i = 1; i < lanes; ++i) total += a.v[i];
    return total;
  }
  friend T least(Pack a) {
    T value = a.v[0];
    for (std::size_t i = 1; i < lanes; ++i) value = a.v[i] < value ? a.v[i] : value;
    return value;
  }
};

#endif

}  // namespace antisparse::ANTISPARSE_ISA
