// The quantised pass with NEON: see prune.hpp.
#pragma once

#include <arm_neon.h>

#include <algorithm>
#include <cstdint>

#include "machine/mask_neon.hpp"
#include "scan/scan.hpp"

namespace antisparse::ANTISPARSE_ISA {

constexpr std::size_t share_a_byte = 4, tables_together = 1;
constexpr float most_wide = 65535;

// A block's 32 bytes, codes 0..15 and 16..31.
struct Bytes {
  uint8x16_t half[2];
};

// 32 sums or limits of 16 bits, eight codes each.
struct Shorts {
  uint16x8_t eighth[4];
};

inline Bytes load_bytes(const std::uint8_t* p) { return {{vld1q_u8(p), vld1q_u8(p + 16)}}; }

// Eight integers of 16 bits, saturated, and eight of those as bytes.
inline uint16x8_t narrow(uint32x4_t a, uint32x4_t b) { return vcombine_u16(vqmovn_u32(a), vqmovn_u32(b)); }
inline uint8x16_t narrow_bytes(uint16x8_t a, uint16x8_t b) { return vcombine_u8(vqmovn_u16(a), vqmovn_u16(b)); }

inline float32x4_t four(const std::int32_t* entries, float factor) {
  return vmulq_n_f32(vcvtq_f32_s32(vld1q_s32(entries)), factor);
}

// out = min(entries * factor, most), rounded down; the count is a multiple of 32.
inline void quantise(const std::int32_t* entries, std::size_t count, float factor, float most, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; i += 16) {
    uint32x4_t v[4];
    for (std::size_t p = 0; p < 4; ++p)
      v[p] = vcvtq_u32_f32(vminq_f32(four(entries + i + 4 * p, factor), vdupq_n_f32(most)));
    vst1q_u8(out + i, narrow_bytes(narrow(v[0], v[1]), narrow(v[2], v[3])));
  }
}

// The integer parts of entries * factor, below 4096, in halves; the count is a multiple of 32.
inline void split(const std::int32_t* entries, std::size_t count, float factor, std::uint8_t* high, std::uint8_t* low) {
  for (std::size_t i = 0; i < count; i += 16) {
    uint32x4_t v[4];
    for (std::size_t p = 0; p < 4; ++p) v[p] = vcvtq_u32_f32(four(entries + i + 4 * p, factor));
    const uint16x8_t first = narrow(v[0], v[1]), second = narrow(v[2], v[3]), lower = vdupq_n_u16(63);
    vst1q_u8(high + i, narrow_bytes(vshrq_n_u16(first, 6), vshrq_n_u16(second, 6)));
    vst1q_u8(low + i, narrow_bytes(vandq_u16(first, lower), vandq_u16(second, lower)));
  }
}

inline void eight(const float* values, float32x4_t out[2]) {
  out[0] = vld1q_f32(values);
  out[1] = vld1q_f32(values + 4);
}

inline void eight(const std::uint8_t* bytes, float32x4_t out[2]) {
  const uint16x8_t shorts = vmovl_u8(vld1_u8(bytes));
  out[0] = vcvtq_f32_u32(vmovl_u16(vget_low_u16(shorts)));
  out[1] = vcvtq_f32_u32(vmovl_high_u16(shorts));
}

// The limits of 32 codes, from their column, rounded down, saturated.
template <class Column>
inline Shorts column_limits(const Column* column, const Limit& limit) {
  const float32x4_t slope = vdupq_n_f32(limit.slope), base = vdupq_n_f32(limit.base), most = vdupq_n_f32(70000);
  Shorts out;
  for (std::size_t p = 0; p < 4; ++p) {
    float32x4_t x[2];
    eight(column + 8 * p, x);
    // NaN (no limit) comes out as 70000; what is out of range saturates, and what is below zero is zero.
    const auto whole = [&](float32x4_t v) { return vcvtq_u32_f32(vminnmq_f32(vfmaq_f32(base, slope, v), most)); };
    out.eighth[p] = narrow(whole(x[0]), whole(x[1]));
  }
  return out;
}

// Of the codes from `at` on.
inline Shorts limits_at(const Codes& codes, std::size_t at, const Limit& limit) {
  if (codes.inverse_bytes) return column_limits(codes.inverse_bytes + at, limit);
  if (codes.inverse) return column_limits(codes.inverse + at, limit);
  const uint16x8_t flat = vdupq_n_u16(static_cast<std::uint16_t>(limit.flat));
  return {{flat, flat, flat, flat}};
}

inline Bytes narrow_bytes(const Shorts& v) {
  return {{narrow_bytes(v.eighth[0], v.eighth[1]), narrow_bytes(v.eighth[2], v.eighth[3])}};
}

// Narrow sums of `blocks` blocks for `queries` queries at once.
template <int queries, int blocks>
inline void narrow_sums(const std::uint8_t* codes, std::size_t bytes, const std::uint8_t* const* tables,
                        Bytes out[queries][blocks]) {
  Bytes sums[queries][blocks];  // not `out`, which may be memory
  const uint8x16_t low = vdupq_n_u8(15), zero = vdupq_n_u8(0);
  for (int q = 0; q < queries; ++q)
    for (int b = 0; b < blocks; ++b) sums[q][b] = {{zero, zero}};
  for (std::size_t j = 0; j < bytes; ++j) {
    Bytes high_nibble[blocks], low_nibble[blocks];
#ifdef __GNUC__
    // As with AVX2: a single query reuses nothing, so memory is its limit.
    if (queries == 1)
      for (int b = 0; b < blocks; b += 2) __builtin_prefetch(codes + (blocks * j + b) * scan_block + 4096);
#endif
    for (int b = 0; b < blocks; ++b) {
      const Bytes c = load_bytes(codes + (b * bytes + j) * scan_block);
      for (int h = 0; h < 2; ++h) {
        high_nibble[b].half[h] = vshrq_n_u8(c.half[h], 4);
        low_nibble[b].half[h] = vandq_u8(c.half[h], low);
      }
    }
    for (int q = 0; q < queries; ++q) {
      const Bytes table = load_bytes(tables[q] + 32 * j);
      for (int b = 0; b < blocks; ++b)
        for (int h = 0; h < 2; ++h) {
          const uint8x16_t both = vqaddq_u8(vqtbl1q_u8(table.half[0], high_nibble[b].half[h]),
                                            vqtbl1q_u8(table.half[1], low_nibble[b].half[h]));
          sums[q][b].half[h] = vqaddq_u8(sums[q][b].half[h], both);
        }
    }
  }
  for (int q = 0; q < queries; ++q)
    for (int b = 0; b < blocks; ++b) out[q][b] = sums[q][b];
}

// masks[q][b]: bit i is set where code i of block b may pass for query q. Codes of a length known to the compiler have
// their loop unrolled whole.
template <int queries, std::size_t known>
inline void narrow_masks(const ScanJob& job, std::size_t first, std::size_t count, const Quantised* tables,
                         const Limit* limits, std::uint32_t* const* masks) {
  const std::size_t bytes = known ? known : job.codes.bytes;
  const std::uint8_t* codes = job.codes.blocks + first * bytes * scan_block;
  const std::uint8_t* entries[queries];
  Bytes flat[queries];
  for (int q = 0; q < queries; ++q) {
    entries[q] = tables[q].entries;
    flat[q].half[0] = flat[q].half[1] = vdupq_n_u8(static_cast<std::uint8_t>(limits[q].flat));
  }
  const bool column = job.codes.column();
  const auto finish = [&](std::size_t b, int q, const Bytes& sum) {
    const Bytes limit = column ? narrow_bytes(limits_at(job.codes, (first + b) * scan_block, limits[q])) : flat[q];
    masks[q][b] = mask_of(vcleq_u8(sum.half[0], limit.half[0]), vcleq_u8(sum.half[1], limit.half[1]));
  };
  std::size_t b = 0;
  constexpr int together = queries == 1 ? 4 : 2;
  for (; b + together <= count; b += together) {
    Bytes sums[queries][together];
    narrow_sums<queries, together>(codes + b * bytes * scan_block, bytes, entries, sums);
    for (int q = 0; q < queries; ++q)
      for (int i = 0; i < together; ++i) finish(b + i, q, sums[q][i]);
  }
  for (; b < count; ++b) {
    Bytes sums[queries][1];
    narrow_sums<queries, 1>(codes + b * bytes * scan_block, bytes, entries, sums);
    for (int q = 0; q < queries; ++q) finish(b, q, sums[q][0]);
  }
}

template <int queries>
inline void prune_narrow(const ScanJob& job, std::size_t first, std::size_t count, const Quantised* tables,
                         const Limit* limits, std::uint32_t* const* masks) {
  if (job.codes.bytes == 8)
    narrow_masks<queries, 8>(job, first, count, tables, limits, masks);
  else
    narrow_masks<queries, 0>(job, first, count, tables, limits, masks);
}

// 16-bit sums of the codes of a block, saturated. Four entries add up in a byte, where they saturate too; `longest`
// bytes of a code have sums that fit 16 bits.
template <int queries>
inline void wide_sums(const ScanJob& job, std::size_t block, const Quantised* tables, Shorts out[queries]) {
  constexpr std::size_t longest = 512;
  const uint8x16_t low = vdupq_n_u8(15);
  const uint16x8_t zero = vdupq_n_u16(0);
  const std::size_t bytes = job.codes.bytes, looked_up = bytes - job.linear;
  const std::uint8_t* codes = job.codes.blocks + block * bytes * scan_block;
  for (std::size_t first = 0; first == 0 || first < looked_up; first += longest) {
    Shorts sums[queries];
    for (int q = 0; q < queries; ++q) sums[q] = {{zero, zero, zero, zero}};
    for (std::size_t j = first; j < std::min(first + longest, looked_up); j += 2) {
      Bytes nibbles[4];
      for (std::size_t i = 0; i < 2; ++i) {
        // An odd last byte is paired with another, for which no table counts.
        const Bytes c = load_bytes(codes + std::min(j + i, bytes - 1) * scan_block);
        for (int h = 0; h < 2; ++h) {
          nibbles[2 * i].half[h] = vshrq_n_u8(c.half[h], 4);
          nibbles[2 * i + 1].half[h] = vandq_u8(c.half[h], low);
        }
      }
      for (int q = 0; q < queries; ++q) {
        const Bytes one = load_bytes(tables[q].entries + 32 * j), two = load_bytes(tables[q].entries + 32 * j + 32);
        for (int h = 0; h < 2; ++h) {
          const uint8x16_t sum = vqaddq_u8(
              vqaddq_u8(vqtbl1q_u8(one.half[0], nibbles[0].half[h]), vqtbl1q_u8(one.half[1], nibbles[1].half[h])),
              vqaddq_u8(vqtbl1q_u8(two.half[0], nibbles[2].half[h]), vqtbl1q_u8(two.half[1], nibbles[3].half[h])));
          sums[q].eighth[2 * h] = vaddw_u8(sums[q].eighth[2 * h], vget_low_u8(sum));
          sums[q].eighth[2 * h + 1] = vaddw_high_u8(sums[q].eighth[2 * h + 1], sum);
        }
      }
    }
    for (int q = 0; q < queries; ++q)
      for (int p = 0; p < 4; ++p)
        out[q].eighth[p] = first ? vqaddq_u16(out[q].eighth[p], sums[q].eighth[p]) : sums[q].eighth[p];
  }
  for (int q = 0; q < queries; ++q)
    for (std::size_t j = 0; j < job.linear; ++j)
      for (int p = 0; p < 4; ++p) {
        const uint16x8_t c = vmovl_u8(vld1_u8(codes + (looked_up + j) * scan_block + 8 * p));
        const uint16x8_t factor = vdupq_n_u16(tables[q].factors[j]);
        const uint32x4_t first = vmull_u16(vget_low_u16(c), vget_low_u16(factor)), second = vmull_high_u16(c, factor);
        const uint16x8_t more = vcombine_u16(vshrn_n_u32(first, 8), vshrn_n_u32(second, 8));
        out[q].eighth[p] = vqaddq_u16(out[q].eighth[p], more);
      }
}

// 64 times the sums of high halves and the sums of low ones, with which the linear bytes count.
inline void fine_sums(const ScanJob& job, std::size_t block, const Quantised halves[2], std::uint16_t* out) {
  Shorts sums[2];
  wide_sums<2>(job, block, halves, sums);
  for (int p = 0; p < 4; ++p) vst1q_u16(out + 8 * p, vaddq_u16(vshlq_n_u16(sums[0].eighth[p], 6), sums[1].eighth[p]));
}

// As prune_narrow, by wide sums.
template <int queries>
inline void prune_wide(const ScanJob& job, std::size_t first, std::size_t count, const Quantised* tables,
                       const Limit* limits, std::uint32_t* const* masks) {
  for (std::size_t b = 0; b < count; ++b) {
    Shorts sums[queries];
    wide_sums<queries>(job, first + b, tables, sums);
    for (int q = 0; q < queries; ++q) {
      const Shorts limit = limits_at(job.codes, (first + b) * scan_block, limits[q]);
      uint8x8_t pass[4];
      for (int p = 0; p < 4; ++p) pass[p] = vmovn_u16(vcleq_u16(sums[q].eighth[p], limit.eighth[p]));
      masks[q][b] = mask_of(vcombine_u8(pass[0], pass[1]), vcombine_u8(pass[2], pass[3]));
    }
  }
}

}  // namespace antisparse::ANTISPARSE_ISA
