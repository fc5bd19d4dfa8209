// Pack<T> by AVX2 and FMA: see simd.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace antisparse::ANTISPARSE_ISA {

template <class T>
struct Pack;

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
  friend Pack min(Pack a, Pack b) { return {_mm256_min_ps(a.v, b.v)}; }  // b where there is no order
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

}  // namespace antisparse::ANTISPARSE_ISA
