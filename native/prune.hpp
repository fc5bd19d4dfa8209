// The quantised pass of the scan: which of 32 codes at a time may still be among the best.
//
// Tables of D are divided by a step and rounded down, so that their sum never exceeds D / step. Narrow sums saturate at
// 255, and the step is set so that the bound lands just below: two look-ups and two additions for 8 bits of 32 codes.
// Wide sums have 16 bits, for long codes and for bounds that narrow ones cannot tell apart.
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including prune.hpp"
#endif

#include <cmath>
#include <cstdint>
#include <vector>

#ifdef ANTISPARSE_TARGET_AVX2
#include <immintrin.h>
#endif

#include "aligned.hpp"
#include "query.hpp"
#include "select.hpp"

namespace antisparse::ANTISPARSE_ISA {

// What the pass compares with: a code may pass if its sum is at most `flat`, or, with terms, at most
// slope * reach_i + offset * bias_i * reach_i + base (bias_i = 0 where it is the same for all).
struct Limit {
  float flat = 0, slope = 0, offset = 0, base = 0;
  bool clamp = true;  // the formula may leave the range of an integer
};

#ifdef ANTISPARSE_TARGET_AVX2
// 32 integers as bytes, saturated, in order.
inline __m256i pack_bytes(const __m256i v[4]) {
  const __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
  return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
#endif

// out = min(sums * factor, most), rounded down; the count is a multiple of 32.
inline void quantise(const std::int32_t* sums, std::size_t count, float factor, float most, std::uint8_t* out) {
#ifdef ANTISPARSE_TARGET_AVX2
  for (std::size_t i = 0; i < count; i += 32) {
    __m256i v[4];
    for (std::size_t p = 0; p < 4; ++p) {
      const auto* eight = reinterpret_cast<const __m256i*>(sums + i + 8 * p);
      const __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_loadu_si256(eight)), _mm256_set1_ps(factor));
      v[p] = _mm256_cvttps_epi32(_mm256_min_ps(value, _mm256_set1_ps(most)));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), pack_bytes(v));
  }
#else
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::uint8_t>(std::min(static_cast<float>(sums[i]) * factor, most));
#endif
}

// A query's quantised tables.
class Tables {
 public:
  explicit Tables(std::size_t nibbles) : used_(nibbles * 16), entries_((nibbles + 2) * 16) {}

  // For codes with D up to about `bound`. Wide entries stay below 64, so that four add up in a byte.
  void build(const ExactTables& exact, double bound, bool wide) {
    wide_ = wide;
    const double most = std::min(bound, static_cast<double>(exact.most + exact.side_total));
    // The largest entry; a wide sum of them all must fit 16 bits.
    const int cap = wide ? std::min<int>(63, static_cast<int>(65535 / exact.nibbles())) : 255;
    // Below 1 a step gains nothing: the sums are integers.
    step_ = std::max(wide ? static_cast<double>(exact.largest()) / cap : most / 254, 1.0);
    // Rounded down; the factor keeps the rounding of the quotient itself from reaching the next integer.
    inverse_ = static_cast<float>(step_ == 1 ? 1 : (1 - 1e-6) / step_);
    most_ = static_cast<float>(cap);
    quantise(exact.nibble(0), used_, inverse_, most_, entries_.data());
    if (wide)
      std::fill_n(&entries_[used_ - 32 * exact.side_weights.size()], 32 * exact.side_weights.size(), std::uint8_t{0});
    factors_.clear();
    for (const std::int32_t weight : exact.side_weights)
      factors_.push_back(static_cast<std::uint16_t>(std::min(256 * (1 - 1e-6) * weight / step_, 65535.0)));
  }

  // The last byte's tables anew.
  void build_last(const ExactTables& exact) {
    quantise(exact.nibble(exact.nibbles() - 2), 32, inverse_, most_, &entries_[used_ - 32]);
  }

  bool wide() const { return wide_; }
  double step() const { return step_; }
  const std::uint8_t* data() const { return entries_.data(); }
  // Side bytes reach further than an entry of a wide table: a byte counts for byte * factor / 256, rounded down.
  const std::uint16_t* factors() const { return factors_.data(); }

 private:
  bool wide_ = false;
  double step_ = 1;
  float inverse_ = 1, most_ = 255;
  std::size_t used_;
  Aligned<std::uint8_t> entries_;  // and zeros for a byte more
  std::vector<std::uint16_t> factors_;
};

// Entries of 12 bits, as tables of their high and of their low halves: with 16-bit sums of both, D is known but for a
// few thousandths, at twice the cost of wide sums. For a block of which many codes pass, and where there is no limit
// yet.
class FineTables {
 public:
  explicit FineTables(std::size_t nibbles) : used_(nibbles * 16), high_((nibbles + 2) * 16), low_((nibbles + 2) * 16) {}

  void build(const ExactTables& exact) {
    const std::size_t side = exact.side_weights.size();
    // Side bytes go to the sums of the low halves, and all sums fit 16 bits.
    const auto total = static_cast<double>(exact.most + exact.side_total);
    step_ = std::max({exact.largest() / 4095.0, total / 65000, 1.0});
    split(exact.nibble(0), used_ - 32 * side, static_cast<float>(step_ == 1 ? 1 : (1 - 1e-6) / step_), high_.data(),
          low_.data());
    factors_.clear();
    for (const std::int32_t weight : exact.side_weights)
      factors_.push_back(static_cast<std::uint16_t>(256 * (1 - 1e-6) * weight / step_));
    none_.assign(side, 0);
  }

  // So that the sums of low halves fit 16 bits, too.
  static bool fit(const ExactTables& exact) { return exact.nibbles() <= 1024; }

  // The sums of a block's codes: D / step, less than `slack` below it.
  void sums(const ScanJob& job, std::size_t block, std::uint16_t* out) const;
  double step() const { return step_; }
  // Every entry is rounded down by less than 1, unless the step is 1, a side byte by less than 2, and all by 1e-6.
  double slack() const {
    const std::size_t side = factors_.size();
    return (step_ == 1 ? 0.0 : static_cast<double>(used_ / 16 - 2 * side) + 0.1) + 2 * static_cast<double>(side);
  }

 private:
  // The integer parts of sums * factor, below 4096, in halves.
  static void split(const std::int32_t* sums, std::size_t count, float factor, std::uint8_t* high, std::uint8_t* low) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto entry = static_cast<std::int32_t>(static_cast<float>(sums[i]) * factor);
      high[i] = static_cast<std::uint8_t>(entry >> 6);
      low[i] = static_cast<std::uint8_t>(entry & 63);
    }
  }

  double step_ = 1;
  std::size_t used_;
  Aligned<std::uint8_t> high_, low_;  // and zeros for a byte more
  std::vector<std::uint16_t> factors_, none_;
};

#ifdef ANTISPARSE_TARGET_AVX2

inline __m256 eight(const float* values) { return _mm256_loadu_ps(values); }

inline __m256 eight(const std::uint8_t* bytes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
}

// Per-code limits of 32 codes, from position `at` on, as 8-bit or 16-bit integers, rounded down, saturated.
struct Limits {
  template <bool clamp>
  static void lanes(const ScanJob& job, std::size_t at, const Limit& limit, __m256i out[4]) {
    const __m256 slope = _mm256_set1_ps(limit.slope), offset = _mm256_set1_ps(limit.offset);
    for (std::size_t p = 0; p < 4; ++p) {
      const std::size_t i = at + 8 * p;
      __m256 value = slope, reach;
      if (job.reach_bytes) {
        value = _mm256_fmadd_ps(offset, eight(job.bias_bytes + i), slope);
        reach = _mm256_fmadd_ps(_mm256_set1_ps(static_cast<float>(job.reach_step)), eight(job.reach_bytes + i),
                                _mm256_set1_ps(static_cast<float>(job.reach_low)));
      } else {
        if (job.bias) value = _mm256_fmadd_ps(offset, eight(job.bias + i), slope);
        reach = eight(job.reach + i);
      }
      value = _mm256_fmadd_ps(value, reach, _mm256_set1_ps(limit.base));
      // Out of an integer's range means far above or below any sum; NaN (no reach) comes out of both as 70000.
      if (clamp) value = _mm256_min_ps(_mm256_max_ps(_mm256_set1_ps(-1), value), _mm256_set1_ps(70000));
      out[p] = _mm256_cvttps_epi32(value);
    }
  }
  static void lanes(const ScanJob& job, std::size_t at, const Limit& limit, __m256i out[4]) {
    if (limit.clamp)
      lanes<true>(job, at, limit, out);
    else
      lanes<false>(job, at, limit, out);
  }
  static __m256i bytes(const ScanJob& job, std::size_t at, const Limit& limit) {
    __m256i v[4];
    lanes(job, at, limit, v);
    return pack_bytes(v);
  }
  // Codes 0..15 and 16..31.
  static void words(const ScanJob& job, std::size_t at, const Limit& limit, __m256i out[2]) {
    __m256i v[4];
    lanes(job, at, limit, v);
    for (int h = 0; h < 2; ++h) out[h] = _mm256_permute4x64_epi64(_mm256_packus_epi32(v[2 * h], v[2 * h + 1]), 0xD8);
  }
};

inline __m256i table(const std::uint8_t* p) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
}

// 16-bit sums of bytes, gathered apart for codes 2 i and 2 i + 1, as codes 0..15 and 16..31. `both` has the even sums
// and 256 times the odd ones.
inline void in_order(__m256i both, __m256i odd, __m256i out[2]) {
  const __m256i even = _mm256_sub_epi16(both, _mm256_slli_epi16(odd, 8));
  const __m256i low = _mm256_unpacklo_epi16(even, odd), high = _mm256_unpackhi_epi16(even, odd);
  out[0] = _mm256_permute2x128_si256(low, high, 0x20);
  out[1] = _mm256_permute2x128_si256(low, high, 0x31);
}

// Narrow sums of `blocks` blocks for `queries` queries at once.
template <int queries, int blocks>
inline void narrow_sums(const std::uint8_t* codes, std::size_t bytes, const std::uint8_t* const* tables,
                        __m256i sums[queries][blocks]) {
  const __m256i low = _mm256_set1_epi8(15);
  for (int q = 0; q < queries; ++q)
    for (int b = 0; b < blocks; ++b) sums[q][b] = _mm256_setzero_si256();
#ifdef __GNUC__
#pragma GCC unroll 8
#endif
  for (std::size_t j = 0; j < bytes; ++j) {
    __m256i high_nibble[blocks], low_nibble[blocks];
    // A single query reuses nothing, so memory is its limit: ask for what comes next, in the order of addresses (in the
    // order of the loads below, several blocks at once, memory gives half as much).
    if (queries == 1)
      for (int b = 0; b < blocks; b += 2)
        _mm_prefetch(reinterpret_cast<const char*>(codes + (blocks * j + b) * scan_block + 4096), _MM_HINT_T0);
    for (int b = 0; b < blocks; ++b) {
      const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + (b * bytes + j) * scan_block));
      high_nibble[b] = _mm256_and_si256(_mm256_srli_epi16(c, 4), low);
      low_nibble[b] = _mm256_and_si256(c, low);
    }
    for (int q = 0; q < queries; ++q) {
      const __m256i th = table(tables[q] + 32 * j), tl = table(tables[q] + 32 * j + 16);
      for (int b = 0; b < blocks; ++b) {
        // The two look-ups first: the sum, which may live in memory, then waits for one addition a byte.
        const __m256i both =
            _mm256_adds_epu8(_mm256_shuffle_epi8(th, high_nibble[b]), _mm256_shuffle_epi8(tl, low_nibble[b]));
        sums[q][b] = _mm256_adds_epu8(sums[q][b], both);
      }
    }
  }
}

inline std::uint32_t at_most(__m256i sum, __m256i limit) {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(sum, limit), sum)));
}

// masks[q][b]: bit i is set where code i of block b may pass for query q.
template <int queries, bool terms>
inline void prune_narrow(const ScanJob& job, std::size_t first, std::size_t count, const std::uint8_t* const* tables,
                         const Limit* limits, std::uint32_t* const* masks) {
  __m256i flat[queries];
  for (int q = 0; q < queries; ++q) flat[q] = _mm256_set1_epi8(static_cast<char>(static_cast<int>(limits[q].flat)));
  const auto finish = [&](std::size_t b, int q, __m256i sum) {
    const std::size_t at = (first + b) * scan_block;
    masks[q][b] = at_most(sum, terms ? Limits::bytes(job, at, limits[q]) : flat[q]);
  };
  std::size_t b = 0;
  constexpr int together = queries == 1 ? 4 : 2;
  for (; b + together <= count; b += together) {
    __m256i sums[queries][together];
    if (job.bytes == 8)  // known to the compiler, which unrolls it whole: a fifth faster for codes so short
      narrow_sums<queries, together>(job.blocks + (first + b) * 8 * scan_block, 8, tables, sums);
    else
      narrow_sums<queries, together>(job.blocks + (first + b) * job.bytes * scan_block, job.bytes, tables, sums);
    for (int q = 0; q < queries; ++q)
      for (int i = 0; i < together; ++i) finish(b + i, q, sums[q][i]);
  }
  for (; b < count; ++b) {
    __m256i sums[queries][1];
    narrow_sums<queries, 1>(job.blocks + (first + b) * job.bytes * scan_block, job.bytes, tables, sums);
    for (int q = 0; q < queries; ++q) finish(b, q, sums[q][0]);
  }
}

template <int queries>
inline void prune_narrow(const ScanJob& job, std::size_t first, std::size_t count, const std::uint8_t* const* tables,
                         const Limit* limits, std::uint32_t* const* masks) {
  if (job.terms())
    prune_narrow<queries, true>(job, first, count, tables, limits, masks);
  else
    prune_narrow<queries, false>(job, first, count, tables, limits, masks);
}

// 16-bit sums of the codes of a block, 0..15 and 16..31. Those of codes 2 i and 2 i + 1 gather apart. Four entries
// below 64 add up in a byte; the even sums gather 256 times the odd ones too, which is taken off at the end.
template <int queries>
inline void wide_sums(const ScanJob& job, std::size_t block, const std::uint8_t* const* tables,
                      const std::uint16_t* const* factors, __m256i sums[queries][2]) {
  const __m256i low = _mm256_set1_epi8(15);
  const std::size_t bit_bytes = job.bytes - job.side;
  const std::uint8_t* codes = job.blocks + block * job.bytes * scan_block;
  __m256i both[queries], odd[queries];
  for (int q = 0; q < queries; ++q) both[q] = odd[q] = _mm256_setzero_si256();
  for (std::size_t j = 0; j < bit_bytes; j += 2) {
    __m256i nibbles[4];
    for (std::size_t i = 0; i < 2; ++i) {
      // An odd last byte is paired with another, for which no table counts.
      const std::size_t byte = std::min(j + i, job.bytes - 1);
      const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + byte * scan_block));
      nibbles[2 * i] = _mm256_and_si256(_mm256_srli_epi16(c, 4), low);
      nibbles[2 * i + 1] = _mm256_and_si256(c, low);
    }
    for (int q = 0; q < queries; ++q) {
      const std::uint8_t* t = tables[q] + 32 * j;
      const __m256i sum = _mm256_add_epi8(
          _mm256_add_epi8(_mm256_shuffle_epi8(table(t), nibbles[0]), _mm256_shuffle_epi8(table(t + 16), nibbles[1])),
          _mm256_add_epi8(_mm256_shuffle_epi8(table(t + 32), nibbles[2]),
                          _mm256_shuffle_epi8(table(t + 48), nibbles[3])));
      both[q] = _mm256_add_epi16(both[q], sum);
      odd[q] = _mm256_add_epi16(odd[q], _mm256_srli_epi16(sum, 8));
    }
  }
  for (int q = 0; q < queries; ++q) {
    in_order(both[q], odd[q], sums[q]);
    for (std::size_t j = 0; j < job.side; ++j) {
      const __m256i factor = _mm256_set1_epi16(static_cast<short>(factors[q][j]));
      for (int h = 0; h < 2; ++h) {
        const auto* half = reinterpret_cast<const __m128i*>(codes + (bit_bytes + j) * scan_block + 16 * h);
        const __m256i bytes = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(half)), 8);
        sums[q][h] = _mm256_adds_epu16(sums[q][h], _mm256_mulhi_epu16(bytes, factor));
      }
    }
  }
}

inline void FineTables::sums(const ScanJob& job, std::size_t block, std::uint16_t* out) const {
  const std::uint8_t* const halves[] = {high_.data(), low_.data()};
  const std::uint16_t* const factors[] = {none_.data(), factors_.data()};
  __m256i sums[2][2];
  wide_sums<2>(job, block, halves, factors, sums);
  for (int h = 0; h < 2; ++h) {
    const __m256i sum = _mm256_add_epi16(_mm256_slli_epi16(sums[0][h], 6), sums[1][h]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * h), sum);
  }
}

// As prune_narrow, by wide sums.
template <int queries>
inline void prune_wide(const ScanJob& job, std::size_t first, std::size_t count, const std::uint8_t* const* tables,
                       const std::uint16_t* const* factors, const Limit* limits, std::uint32_t* const* masks) {
  for (std::size_t b = 0; b < count; ++b) {
    __m256i sums[queries][2];
    wide_sums<queries>(job, first + b, tables, factors, sums);
    for (int q = 0; q < queries; ++q) {
      __m256i limit[2];
      if (job.terms()) {
        Limits::words(job, (first + b) * scan_block, limits[q], limit);
      } else {
        limit[0] = limit[1] = _mm256_set1_epi16(static_cast<short>(static_cast<int>(limits[q].flat)));
      }
      __m256i pass[2];
      for (int i = 0; i < 2; ++i) pass[i] = _mm256_cmpeq_epi16(_mm256_min_epu16(sums[q][i], limit[i]), sums[q][i]);
      const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi16(pass[0], pass[1]), 0xD8);
      masks[q][b] = static_cast<std::uint32_t>(_mm256_movemask_epi8(packed));
    }
  }
}

#else

// The sums of the codes of a block: by entries alone, or, with factors, by these for side bytes.
inline void block_sums(const ScanJob& job, std::size_t block, const std::uint8_t* tables, const std::uint16_t* factors,
                       int* sums) {
  const std::uint8_t* codes = job.blocks + block * job.bytes * scan_block;
  const std::size_t looked_up = factors ? job.bytes - job.side : job.bytes;
  std::fill_n(sums, scan_block, 0);
  for (std::size_t j = 0; j < looked_up; ++j)
    for (std::size_t i = 0; i < scan_block; ++i) {
      const std::uint8_t c = codes[j * scan_block + i];
      sums[i] += tables[32 * j + (c >> 4)] + tables[32 * j + 16 + (c & 15)];
    }
  for (std::size_t j = looked_up; j < job.bytes; ++j)
    for (std::size_t i = 0; i < scan_block; ++i) sums[i] += codes[j * scan_block + i] * factors[j - looked_up] >> 8;
}

inline void FineTables::sums(const ScanJob& job, std::size_t block, std::uint16_t* out) const {
  int high[scan_block], low[scan_block];
  block_sums(job, block, high_.data(), none_.data(), high);
  block_sums(job, block, low_.data(), factors_.data(), low);
  for (std::size_t i = 0; i < scan_block; ++i) out[i] = static_cast<std::uint16_t>(64 * high[i] + low[i]);
}

template <int queries>
inline void prune_any(const ScanJob& job, std::size_t first, std::size_t count, const std::uint8_t* const* tables,
                      const std::uint16_t* const* factors, const Limit* limits, std::uint32_t* const* masks, int most) {
  for (std::size_t b = 0; b < count; ++b)
    for (int q = 0; q < queries; ++q) {
      int sums[scan_block];
      block_sums(job, first + b, tables[q], factors ? factors[q] : nullptr, sums);
      std::uint32_t mask = 0;
      for (std::size_t i = 0; i < scan_block; ++i) {
        float limit = limits[q].flat;
        if (job.terms()) {
          const std::size_t at = (first + b) * scan_block + i;
          float bias = job.bias ? job.bias[at] : 0, reach = 0;
          if (job.reach_bytes) {
            bias = job.bias_bytes[at];
            const float more = static_cast<float>(job.reach_step) * job.reach_bytes[at];
            reach = static_cast<float>(job.reach_low) + more;
          } else {
            reach = job.reach[at];
          }
          limit = (limits[q].slope + limits[q].offset * bias) * reach + limits[q].base;
        }
        mask |= static_cast<std::uint32_t>(!(static_cast<float>(std::min(sums[i], most)) > limit)) << i;
      }
      masks[q][b] = mask;
    }
}

template <int queries>
inline void prune_narrow(const ScanJob& job, std::size_t first, std::size_t count, const std::uint8_t* const* tables,
                         const Limit* limits, std::uint32_t* const* masks) {
  prune_any<queries>(job, first, count, tables, nullptr, limits, masks, 255);
}

template <int queries>
inline void prune_wide(const ScanJob& job, std::size_t first, std::size_t count, const std::uint8_t* const* tables,
                       const std::uint16_t* const* factors, const Limit* limits, std::uint32_t* const* masks) {
  prune_any<queries>(job, first, count, tables, factors, limits, masks, 65535);
}

#endif

}  // namespace antisparse::ANTISPARSE_ISA
