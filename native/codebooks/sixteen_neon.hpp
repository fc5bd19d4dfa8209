// Sixteen<int16_t> by NEON: see sixteen.hpp.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace antisparse::ANTISPARSE_ISA {

template <>
struct Sixteen<std::int16_t> {
  int16x8_t low, high;
  static Sixteen load(const std::int16_t* p) { return {vld1q_s16(p), vld1q_s16(p + 8)}; }
  static Sixteen all(int x) {
    const int16x8_t lanes = vdupq_n_s16(static_cast<std::int16_t>(x));
    return {lanes, lanes};
  }
  void store(std::int16_t* p) const {
    vst1q_s16(p, low);
    vst1q_s16(p + 8, high);
  }
  friend Sixteen operator+(Sixteen a, Sixteen b) { return {vaddq_s16(a.low, b.low), vaddq_s16(a.high, b.high)}; }
  friend Sixteen operator-(Sixteen a, Sixteen b) { return {vqsubq_s16(a.low, b.low), vqsubq_s16(a.high, b.high)}; }
  friend Sixteen max(Sixteen a, Sixteen b) { return {vmaxq_s16(a.low, b.low), vmaxq_s16(a.high, b.high)}; }
};

template <>
class LeastSixteen<std::int16_t> {
 public:
  using Integers = Sixteen<std::int16_t>;
  void offer(Integers value, Integers group) {
    group_.low = vbslq_s16(vcltq_s16(value.low, low_.low), group.low, group_.low);
    group_.high = vbslq_s16(vcltq_s16(value.high, low_.high), group.high, group_.high);
    low_ = {vminq_s16(value.low, low_.low), vminq_s16(value.high, low_.high)};
  }
  std::int32_t value() const { return key() >> 16; }
  std::size_t where() const { return static_cast<std::size_t>(key() & 0xffff); }

 private:
  // The value in the high 16 bits, its number in the low ones.
  std::int32_t key() const {
    static constexpr std::int16_t places[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const auto least = [](int16x8_t low, int16x8_t group, const std::int16_t* place) {
      const int16x8_t at = vaddq_s16(vshlq_n_s16(group, 4), vld1q_s16(place));
      return vminq_s32(vreinterpretq_s32_s16(vzip1q_s16(at, low)), vreinterpretq_s32_s16(vzip2q_s16(at, low)));
    };
    return vminvq_s32(vminq_s32(least(low_.low, group_.low, places), least(low_.high, group_.high, places + 8)));
  }

  Integers low_ = Integers::all(INT16_MAX), group_ = Integers::all(0);
};

}  // namespace antisparse::ANTISPARSE_ISA
