// The quantised pass with AVX2: see prune.hpp.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "scan/entries_avx2.hpp"
#include "scan/scan.hpp"

namespace antisparse::ANTISPARSE_ISA {

constexpr std::size_t share_a_byte = 4, tables_together = 1;
constexpr float most_wide = 65535;

inline __m256 eight(const float* values) { return _mm256_loadu_ps(values); }

inline __m256 eight(const std::uint8_t* bytes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
}

// The limits of 32 codes, from their column, as 8-bit or 16-bit integers, rounded down, saturated.
struct Limits {
  template <bool clamp, class Column>
  static void lanes(const Column* column, const Limit& limit, __m256i out[4]) {
    const __m256 slope = _mm256_set1_ps(limit.slope), base = _mm256_set1_ps(limit.base);
    for (std::size_t p = 0; p < 4; ++p) {
      __m256 value = _mm256_fmadd_ps(slope, eight(column + 8 * p), base);
      // Out of an integer's range means far above or below any sum; NaN (no limit) comes out of both as 70000.
      if (clamp) value = _mm256_min_ps(_mm256_max_ps(_mm256_set1_ps(-1), value), _mm256_set1_ps(70000));
      out[p] = _mm256_cvttps_epi32(value);
    }
  }
  template <class Column>
  static void lanes(const Column* column, const Limit& limit, __m256i out[4]) {
    if (limit.clamp)
      lanes<true>(column, limit, out);
    else
      lanes<false>(column, limit, out);
  }
  template <class Column>
  static __m256i bytes(const Column* column, const Limit& limit) {
    __m256i v[4];
    lanes(column, limit, v);
    return pack_bytes(v);
  }
  // Codes 0..15 and 16..31.
  template <class Column>
  static void shorts(const Column* column, const Limit& limit, __m256i out[2]) {
    __m256i v[4];
    lanes(column, limit, v);
    for (int h = 0; h < 2; ++h) out[h] = _mm256_permute4x64_epi64(_mm256_packus_epi32(v[2 * h], v[2 * h + 1]), 0xD8);
  }
};

// In place of a column's type where codes have none.
struct NoColumn {};

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
                        __m256i out[queries][blocks]) {
  __m256i sums[queries][blocks];  // not `out`, which may be memory
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
  for (int q = 0; q < queries; ++q)
    for (int b = 0; b < blocks; ++b) out[q][b] = sums[q][b];
}

inline std::uint32_t at_most(__m256i sum, __m256i limit) {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(sum, limit), sum)));
}

// masks[q][b]: bit i is set where code i of block b may pass for query q. Codes of a length known to the compiler have
// their loop unrolled whole: a fifth faster for short ones.
template <int queries, std::size_t known, class Column>
inline void narrow_masks(const ScanJob& job, const Column* column, std::size_t first, std::size_t count,
                         const Quantised* tables, const Limit* limits, std::uint32_t* const* masks) {
  const std::size_t bytes = known ? known : job.codes.bytes;
  const std::uint8_t* codes = job.codes.blocks + first * bytes * scan_block;
  const std::uint8_t* entries[queries];
  __m256i flat[queries];
  for (int q = 0; q < queries; ++q) {
    entries[q] = tables[q].entries;
    flat[q] = _mm256_set1_epi8(static_cast<char>(static_cast<int>(limits[q].flat)));
  }
  const auto finish = [&](std::size_t b, int q, __m256i sum) {
    if constexpr (std::is_same_v<Column, NoColumn>)
      masks[q][b] = at_most(sum, flat[q]);
    else
      masks[q][b] = at_most(sum, Limits::bytes(column + (first + b) * scan_block, limits[q]));
  };
  std::size_t b = 0;
  constexpr int together = queries == 1 ? 4 : 2;
  for (; b + together <= count; b += together) {
    __m256i sums[queries][together];
    narrow_sums<queries, together>(codes + b * bytes * scan_block, bytes, entries, sums);
    for (int q = 0; q < queries; ++q)
      for (int i = 0; i < together; ++i) finish(b + i, q, sums[q][i]);
  }
  for (; b < count; ++b) {
    __m256i sums[queries][1];
    narrow_sums<queries, 1>(codes + b * bytes * scan_block, bytes, entries, sums);
    for (int q = 0; q < queries; ++q) finish(b, q, sums[q][0]);
  }
}

template <int queries, std::size_t known>
inline void narrow_masks(const ScanJob& job, std::size_t first, std::size_t count, const Quantised* tables,
                         const Limit* limits, std::uint32_t* const* masks) {
  if (job.codes.inverse_bytes)
    narrow_masks<queries, known>(job, job.codes.inverse_bytes, first, count, tables, limits, masks);
  else if (job.codes.inverse)
    narrow_masks<queries, known>(job, job.codes.inverse, first, count, tables, limits, masks);
  else
    narrow_masks<queries, known, NoColumn>(job, nullptr, first, count, tables, limits, masks);
}

template <int queries>
inline void prune_narrow(const ScanJob& job, std::size_t first, std::size_t count, const Quantised* tables,
                         const Limit* limits, std::uint32_t* const* masks) {
  if (job.codes.bytes == 8)
    narrow_masks<queries, 8>(job, first, count, tables, limits, masks);
  else
    narrow_masks<queries, 0>(job, first, count, tables, limits, masks);
}

// 16-bit sums of the codes of a block, 0..15 and 16..31, saturated. Four entries add up in a byte, where they saturate
// too. Sums of codes 2 i and 2 i + 1 gather apart; the even ones gather 256 times the odd ones too, which is taken off
// at the end, and fit 16 bits for as many as `longest` bytes of a code.
template <int queries>
inline void wide_sums(const ScanJob& job, std::size_t block, const Quantised* tables, __m256i sums[queries][2]) {
  constexpr std::size_t longest = 512;
  const __m256i low = _mm256_set1_epi8(15);
  const std::size_t bytes = job.codes.bytes, looked_up = bytes - job.linear;
  const std::uint8_t* codes = job.codes.blocks + block * bytes * scan_block;
  for (std::size_t first = 0; first == 0 || first < looked_up; first += longest) {
    __m256i both[queries], odd[queries];
    for (int q = 0; q < queries; ++q) both[q] = odd[q] = _mm256_setzero_si256();
    for (std::size_t j = first; j < std::min(first + longest, looked_up); j += 2) {
      __m256i nibbles[4];
      for (std::size_t i = 0; i < 2; ++i) {
        // An odd last byte is paired with another, for which no table counts.
        const std::size_t byte = std::min(j + i, bytes - 1);
        const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + byte * scan_block));
        nibbles[2 * i] = _mm256_and_si256(_mm256_srli_epi16(c, 4), low);
        nibbles[2 * i + 1] = _mm256_and_si256(c, low);
      }
      for (int q = 0; q < queries; ++q) {
        const std::uint8_t* t = tables[q].entries + 32 * j;
        const __m256i sum = _mm256_adds_epu8(
            _mm256_adds_epu8(_mm256_shuffle_epi8(table(t), nibbles[0]), _mm256_shuffle_epi8(table(t + 16), nibbles[1])),
            _mm256_adds_epu8(_mm256_shuffle_epi8(table(t + 32), nibbles[2]),
                             _mm256_shuffle_epi8(table(t + 48), nibbles[3])));
        both[q] = _mm256_add_epi16(both[q], sum);
        odd[q] = _mm256_add_epi16(odd[q], _mm256_srli_epi16(sum, 8));
      }
    }
    for (int q = 0; q < queries; ++q) {
      __m256i part[2];
      in_order(both[q], odd[q], part);
      for (int h = 0; h < 2; ++h) sums[q][h] = first ? _mm256_adds_epu16(sums[q][h], part[h]) : part[h];
    }
  }
  for (int q = 0; q < queries; ++q) {
    for (std::size_t j = 0; j < job.linear; ++j) {
      const __m256i factor = _mm256_set1_epi16(static_cast<short>(tables[q].factors[j]));
      for (int h = 0; h < 2; ++h) {
        const auto* half = reinterpret_cast<const __m128i*>(codes + (looked_up + j) * scan_block + 16 * h);
        const __m256i high = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(half)), 8);
        sums[q][h] = _mm256_adds_epu16(sums[q][h], _mm256_mulhi_epu16(high, factor));
      }
    }
  }
}

// 64 times the sums of high halves and the sums of low ones, with which the linear bytes count.
inline void fine_sums(const ScanJob& job, std::size_t block, const Quantised halves[2], std::uint16_t* out) {
  __m256i sums[2][2];
  wide_sums<2>(job, block, halves, sums);
  for (int h = 0; h < 2; ++h) {
    const __m256i sum = _mm256_add_epi16(_mm256_slli_epi16(sums[0][h], 6), sums[1][h]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * h), sum);
  }
}

// As prune_narrow, by wide sums.
template <int queries>
inline void prune_wide(const ScanJob& job, std::size_t first, std::size_t count, const Quantised* tables,
                       const Limit* limits, std::uint32_t* const* masks) {
  for (std::size_t b = 0; b < count; ++b) {
    __m256i sums[queries][2];
    wide_sums<queries>(job, first + b, tables, sums);
    for (int q = 0; q < queries; ++q) {
      __m256i limit[2];
      const std::size_t at = (first + b) * scan_block;
      if (job.codes.inverse_bytes) {
        Limits::shorts(job.codes.inverse_bytes + at, limits[q], limit);
      } else if (job.codes.inverse) {
        Limits::shorts(job.codes.inverse + at, limits[q], limit);
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

}  // namespace antisparse::ANTISPARSE_ISA
