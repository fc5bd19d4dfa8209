// Pack<T> by NEON, two registers a pack: see simd.hpp.
#pragma once

#include <arm_neon.h>

#include <cstddef>

namespace antisparse::ANTISPARSE_ISA {

template <class T>
struct Pack;

template <>
struct Pack<float> {
  static constexpr std::size_t lanes = 8;
  float32x4_t low, high;
  static Pack load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  static Pack all(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  static Pack count() {
    static constexpr float numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    return load(numbers);
  }
  void store(float* p) const {
    vst1q_f32(p, low);
    vst1q_f32(p + 4, high);
  }
  friend Pack operator+(Pack a, Pack b) { return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }
  friend Pack operator-(Pack a, Pack b) { return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)}; }
  friend Pack operator*(Pack a, Pack b) { return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }
  friend Pack operator/(Pack a, Pack b) { return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)}; }
  friend Pack operator<(Pack a, Pack b) { return {less(a.low, b.low), less(a.high, b.high)}; }
  friend Pack fma(Pack a, Pack b, Pack c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }
  // b where there is no order; NEON's own would be NaN there.
  friend Pack min(Pack a, Pack b) { return select(a < b, a, b); }
  friend Pack abs(Pack a) { return {vabsq_f32(a.low), vabsq_f32(a.high)}; }
  // Where the mask is set yes, elsewhere no.
  friend Pack select(Pack mask, Pack yes, Pack no) {
    return {choose(mask.low, yes.low, no.low), choose(mask.high, yes.high, no.high)};
  }
  // The lanes' total and their least.
  friend float sum(Pack a) {
    const float32x4_t r = vaddq_f32(a.low, a.high);
    return vpadds_f32(vadd_f32(vget_low_f32(r), vget_high_f32(r)));
  }
  friend float least(Pack a) {
    const float32x4_t r = choose(less(a.low, a.high), a.low, a.high);
    const float32x2_t even = vget_low_f32(r), odd = vget_high_f32(r), s = vbsl_f32(vclt_f32(even, odd), even, odd);
    const float first = vget_lane_f32(s, 0), second = vget_lane_f32(s, 1);
    return first < second ? first : second;
  }

 private:
  static float32x4_t less(float32x4_t a, float32x4_t b) { return vreinterpretq_f32_u32(vcltq_f32(a, b)); }
  static float32x4_t choose(float32x4_t mask, float32x4_t yes, float32x4_t no) {
    return vbslq_f32(vreinterpretq_u32_f32(mask), yes, no);
  }
};

template <>
struct Pack<double> {
  static constexpr std::size_t lanes = 4;
  float64x2_t low, high;
  static Pack load(const double* p) { return {vld1q_f64(p), vld1q_f64(p + 2)}; }
  static Pack all(double x) { return {vdupq_n_f64(x), vdupq_n_f64(x)}; }
  static Pack count() {
    static constexpr double numbers[] = {0, 1, 2, 3};
    return load(numbers);
  }
  void store(double* p) const {
    vst1q_f64(p, low);
    vst1q_f64(p + 2, high);
  }
  friend Pack operator+(Pack a, Pack b) { return {vaddq_f64(a.low, b.low), vaddq_f64(a.high, b.high)}; }
  friend Pack operator-(Pack a, Pack b) { return {vsubq_f64(a.low, b.low), vsubq_f64(a.high, b.high)}; }
  friend Pack operator*(Pack a, Pack b) { return {vmulq_f64(a.low, b.low), vmulq_f64(a.high, b.high)}; }
  friend Pack operator/(Pack a, Pack b) { return {vdivq_f64(a.low, b.low), vdivq_f64(a.high, b.high)}; }
  friend Pack operator<(Pack a, Pack b) { return {less(a.low, b.low), less(a.high, b.high)}; }
  friend Pack fma(Pack a, Pack b, Pack c) {
    return {vfmaq_f64(c.low, a.low, b.low), vfmaq_f64(c.high, a.high, b.high)};
  }
  friend Pack abs(Pack a) { return {vabsq_f64(a.low), vabsq_f64(a.high)}; }
  friend Pack select(Pack mask, Pack yes, Pack no) {
    return {choose(mask.low, yes.low, no.low), choose(mask.high, yes.high, no.high)};
  }
  friend double sum(Pack a) { return vpaddd_f64(vaddq_f64(a.low, a.high)); }
  friend double least(Pack a) {
    const float64x2_t r = choose(less(a.low, a.high), a.low, a.high);
    const double first = vgetq_lane_f64(r, 0), second = vgetq_lane_f64(r, 1);
    return first < second ? first : second;
  }

 private:
  static float64x2_t less(float64x2_t a, float64x2_t b) { return vreinterpretq_f64_u64(vcltq_f64(a, b)); }
  static float64x2_t choose(float64x2_t mask, float64x2_t yes, float64x2_t no) {
    return vbslq_f64(vreinterpretq_u64_f64(mask), yes, no);
  }
};

}  // namespace antisparse::ANTISPARSE_ISA
