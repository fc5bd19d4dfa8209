// Masks of lanes as bits of an integer, by NEON, which has no instruction for it.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace antisparse::ANTISPARSE_ISA {

// Of 32 bytes, all bits set or none: bit i is set where byte i is.
inline std::uint32_t mask_of(uint8x16_t low, uint8x16_t high) {
  static constexpr std::uint8_t bits[] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t own = vld1q_u8(bits);
  // Neighbours added up thrice: of eight bytes each has a bit of its own.
  uint8x16_t sums = vpaddq_u8(vandq_u8(low, own), vandq_u8(high, own));
  sums = vpaddq_u8(sums, sums);
  sums = vpaddq_u8(sums, sums);
  return vgetq_lane_u32(vreinterpretq_u32_u8(sums), 0);
}

}  // namespace antisparse::ANTISPARSE_ISA
