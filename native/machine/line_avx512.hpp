// Line<T> by AVX-512: see line.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace antisparse::ANTISPARSE_ISA {

template <>
struct Line<float> {
  static constexpr std::size_t lanes = 16;
  __m512 v;
  static Line load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Line all(float x) { return {_mm512_set1_ps(x)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  friend Line operator+(Line a, Line b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Line operator-(Line a, Line b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Line fma(Line a, Line b, Line c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend Line where_less(Line a, Line b, Line yes, Line no) {
    return {_mm512_mask_mov_ps(no.v, _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), yes.v)};
  }
};

template <>
struct Line<double> {
  static constexpr std::size_t lanes = 8;
  __m512d v;
  static Line load(const double* p) { return {_mm512_loadu_pd(p)}; }
  static Line all(double x) { return {_mm512_set1_pd(x)}; }
  void store(double* p) const { _mm512_storeu_pd(p, v); }
  friend Line fma(Line a, Line b, Line c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
};

}  // namespace antisparse::ANTISPARSE_ISA
