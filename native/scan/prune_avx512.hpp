// The quantised pass with AVX-512 (BW, VBMI, VNNI): see prune.hpp. For narrow sums a register holds two bytes of the 32
// codes of a block; for wide ones, four bytes of 16 codes, which one instruction adds to sums of 32 bits.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "scan/entries_avx2.hpp"
#include "scan/scan.hpp"

namespace antisparse::ANTISPARSE_ISA {

constexpr std::size_t share_a_byte = 2, tables_together = 4;
constexpr float most_wide = 1 << 30;

// Nibbles of two bytes of 32 codes, as places in the 64 entries of both bytes: of the first byte's high nibbles the
// table comes first, then that of its low ones, then the second's.
struct Places {
  __m512i high, low;
  explicit Places(__m512i bytes) {
    const __m512i second = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi8(32), 1);
    const __m512i both = _mm512_add_epi8(second, _mm512_set1_epi8(16)), nibble = _mm512_set1_epi8(15);
    constexpr int in_or = 0xEA;  // (a & b) | c
    high = _mm512_ternarylogic_epi64(_mm512_srli_epi16(bytes, 4), nibble, second, in_or);
    low = _mm512_ternarylogic_epi64(bytes, nibble, both, in_or);
  }
  // The sums of both nibbles of each byte, saturated.
  __m512i look_up(__m512i entries) const {
    return _mm512_adds_epu8(_mm512_permutexvar_epi8(high, entries), _mm512_permutexvar_epi8(low, entries));
  }
};

// Two bytes of the codes of a block; of the last byte, where their number is odd, that alone: no table counts for more.
template <bool last>
inline Places places(const std::uint8_t* codes) {
  if (last) return Places(_mm512_zextsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes))));
  return Places(_mm512_loadu_si512(codes));
}

// A single query reuses nothing, so memory is its limit: it asks for what comes next, in the order of addresses.
inline void ask_ahead(const std::uint8_t* codes) {
  _mm_prefetch(reinterpret_cast<const char*>(codes + 8192), _MM_HINT_T0);
}

// In place of a column's type where codes have none.
struct NoColumn {};

// The limits of the codes of one block or two, from their column, as bytes, rounded down, saturated.
template <int blocks>
struct Limits {
  static __m512 sixteen(const float* values) { return _mm512_loadu_ps(values); }
  static __m512 sixteen(const std::uint8_t* bytes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes))));
  }
  template <bool clamp, class Column>
  static void lanes(const Column* column, const Limit& limit, __m512i out[4]) {
    const __m512 slope = _mm512_set1_ps(limit.slope), base = _mm512_set1_ps(limit.base);
    for (int p = 0; p < 2 * blocks; ++p) {
      __m512 value = _mm512_fmadd_ps(slope, sixteen(column + 16 * p), base);
      // Out of an integer's range means far above or below any sum; NaN (no limit) comes out of both as 70000.
      if (clamp) value = _mm512_min_ps(_mm512_max_ps(_mm512_set1_ps(-1), value), _mm512_set1_ps(70000));
      out[p] = _mm512_cvttps_epi32(value);
    }
    for (int p = 2 * blocks; p < 4; ++p) out[p] = _mm512_setzero_si512();
  }
  template <class Column>
  static void lanes(const Column* column, const Limit& limit, __m512i out[4]) {
    if (limit.clamp)
      lanes<true>(column, limit, out);
    else
      lanes<false>(column, limit, out);
  }
  template <class Column>
  static __m512i bytes(const Column* column, const Limit& limit) {
    __m512i v[4];
    lanes(column, limit, v);
    const __m512i packed = _mm512_packus_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, packed);
  }
};

// Narrow sums of `blocks` blocks for `queries` queries at once; those of the bytes with odd and with even numbers
// apart.
template <int queries, int blocks>
inline void narrow_sums(const std::uint8_t* codes, std::size_t bytes, const std::uint8_t* const* tables,
                        __m512i out[queries][blocks]) {
  __m512i sums[queries][blocks];  // not `out`, which may be memory
  for (int q = 0; q < queries; ++q)
    for (int b = 0; b < blocks; ++b) sums[q][b] = _mm512_setzero_si512();
  const auto add = [&](std::size_t j, auto last) {
    __m512i entries[queries];
    for (int q = 0; q < queries; ++q) entries[q] = _mm512_loadu_si512(tables[q] + 32 * j);
    for (int b = 0; b < blocks; ++b) {
      const Places place = places<last>(codes + (b * bytes + j) * scan_block);
      for (int q = 0; q < queries; ++q) sums[q][b] = _mm512_adds_epu8(sums[q][b], place.look_up(entries[q]));
    }
  };
  std::size_t j = 0;
  for (; j + 2 <= bytes; j += 2) {
    if (queries == 1)
      for (int b = 0; b < blocks; ++b) ask_ahead(codes + (blocks * j + 2 * b) * scan_block);
    add(j, std::false_type());
  }
  if (j < bytes) add(j, std::true_type());
  for (int q = 0; q < queries; ++q)
    for (int b = 0; b < blocks; ++b) out[q][b] = sums[q][b];
}

// The narrow sums of two blocks.
inline __m512i two_blocks(__m512i first, __m512i second) {
  return _mm512_adds_epu8(_mm512_shuffle_i64x2(first, second, 0x44), _mm512_shuffle_i64x2(first, second, 0xEE));
}

// masks[q][b]: bit i is set where code i of block b may pass for query q.
template <int queries, std::size_t known, class Column>
inline void narrow_masks(const ScanJob& job, const Column* column, std::size_t first, std::size_t count,
                         const Quantised* tables, const Limit* limits, std::uint32_t* const* masks) {
  const std::size_t bytes = known ? known : job.codes.bytes, block = bytes * scan_block;
  const std::uint8_t* codes = job.codes.blocks + first * block;
  const std::uint8_t* entries[queries];
  __m512i flat[queries];
  for (int q = 0; q < queries; ++q) {
    entries[q] = tables[q].entries;
    flat[q] = _mm512_set1_epi8(static_cast<char>(static_cast<int>(limits[q].flat)));
  }
  const auto passing = [&](std::size_t b, int q, __m512i sum, auto blocks) {
    if constexpr (std::is_same_v<Column, NoColumn>)
      return _mm512_cmple_epu8_mask(sum, flat[q]);
    else
      return _mm512_cmple_epu8_mask(sum, Limits<blocks>::bytes(column + (first + b) * scan_block, limits[q]));
  };
  const auto two = [&](std::size_t b, int q, __m512i sum) {
    const __mmask64 mask = passing(b, q, sum, std::integral_constant<int, 2>());
    masks[q][b] = static_cast<std::uint32_t>(mask);
    masks[q][b + 1] = static_cast<std::uint32_t>(mask >> 32);
  };
  std::size_t b = 0;
  constexpr int together = queries == 1 ? 8 : 4;
  for (; b + together <= count; b += together) {
    __m512i sums[queries][together];
    narrow_sums<queries, together>(codes + b * block, bytes, entries, sums);
    for (int q = 0; q < queries; ++q)
      for (int i = 0; i < together; i += 2) two(b + i, q, two_blocks(sums[q][i], sums[q][i + 1]));
  }
  for (; b + 2 <= count; b += 2) {
    __m512i sums[queries][2];
    narrow_sums<queries, 2>(codes + b * block, bytes, entries, sums);
    for (int q = 0; q < queries; ++q) two(b, q, two_blocks(sums[q][0], sums[q][1]));
  }
  if (b == count) return;
  __m512i sums[queries][1];
  narrow_sums<queries, 1>(codes + b * block, bytes, entries, sums);
  for (int q = 0; q < queries; ++q) {
    const __m512i sum = two_blocks(sums[q][0], _mm512_setzero_si512());
    masks[q][b] = static_cast<std::uint32_t>(passing(b, q, sum, std::integral_constant<int, 1>()));
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

// Loads stay in registers, which GCC would repeat for every use: loads are then the limit.
inline void keep([[maybe_unused]] __m512i& a, [[maybe_unused]] __m512i& b) {
#ifdef __GNUC__
  asm("" : "+v"(a), "+v"(b));
#endif
}

// The nibbles of four bytes of 32 codes, 16 and 16, as places in the 64 entries of their tables.
struct Quads {
  __m512i high[2], low[2];

  // Of two bytes of all codes, and the next two.
  Quads(__m512i first, __m512i second) {
    const __m512i number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i order =
        _mm512_add_epi8(_mm512_set1_epi32(0x60402000), _mm512_mullo_epi32(number, _mm512_set1_epi32(0x01010101)));
    const __m512i nibble = _mm512_set1_epi8(15), table = _mm512_set1_epi32(0x30201000);
    constexpr int in_or = 0xEA;  // (a & b) | c
    for (int h = 0; h < 2; ++h) {
      const __m512i from = _mm512_add_epi8(order, _mm512_set1_epi8(static_cast<char>(16 * h)));
      const __m512i four = _mm512_permutex2var_epi8(first, from, second);
      high[h] = _mm512_ternarylogic_epi64(_mm512_srli_epi16(four, 4), nibble, table, in_or);
      low[h] = _mm512_ternarylogic_epi64(four, nibble, table, in_or);
    }
  }
};

// Those of the bytes from `codes` on, of which a code has `left` more.
template <bool whole>
inline Quads quads(const std::uint8_t* codes, std::size_t left) {
  if (whole || left >= 4) {
    __m512i first = _mm512_loadu_si512(codes), second = _mm512_loadu_si512(codes + 64);
    keep(first, second);
    return {first, second};
  }
  const auto half = [&](std::size_t byte) {
    const __mmask64 read = left >= byte + 2 ? ~__mmask64{0} : left > byte ? 0xFFFFFFFF : 0;
    return _mm512_maskz_loadu_epi8(read, codes + byte * scan_block);
  };
  return {half(0), half(2)};
}

// The limits of 16 codes, from their column, rounded down.
template <class Column>
inline __m512i wide_limits(const Column* column, const Limit& limit) {
  __m512 value = _mm512_fmadd_ps(_mm512_set1_ps(limit.slope), Limits<1>::sixteen(column), _mm512_set1_ps(limit.base));
  // Out of an integer's range means far above or below any sum; NaN (no limit) comes out of both as the greatest.
  if (limit.clamp) value = _mm512_min_ps(_mm512_max_ps(_mm512_set1_ps(-1), value), _mm512_set1_ps(most_wide));
  return _mm512_cvttps_epi32(value);
}

// Sums of the bytes that are looked up, of some blocks from `codes` on for some queries at once.
template <int queries, int blocks>
inline void wide_sums(const std::uint8_t* codes, std::size_t bytes, std::size_t looked_up, const Quantised* tables,
                      __m512i out[queries][blocks][2]) {
  const __m512i ones = _mm512_set1_epi8(1);
  const std::uint8_t* entries[queries];
  for (int q = 0; q < queries; ++q) entries[q] = tables[q].entries;
  __m512i sums[queries][blocks][2];  // not `out`, which may be memory
  for (int q = 0; q < queries; ++q)
    for (int i = 0; i < blocks; ++i) sums[q][i][0] = sums[q][i][1] = _mm512_setzero_si512();
  const auto add = [&](std::size_t j, auto whole) {
    for (int i = 0; i < blocks; ++i) {
      const std::uint8_t* four = codes + (i * bytes + j) * scan_block;
      if (queries == 1)
        for (int line = 0; line < 128; line += 64) ask_ahead(four + line);
      const Quads place = quads<whole>(four, bytes - j);
      for (int q = 0; q < queries; ++q) {
        __m512i high = _mm512_loadu_si512(entries[q] + 32 * j);
        __m512i low = _mm512_loadu_si512(entries[q] + 32 * j + 64);
        keep(high, low);
        for (int h = 0; h < 2; ++h) {
          const __m512i both = _mm512_adds_epu8(_mm512_permutexvar_epi8(place.high[h], high),
                                                _mm512_permutexvar_epi8(place.low[h], low));
          sums[q][i][h] = _mm512_dpbusd_epi32(sums[q][i][h], both, ones);
        }
      }
    }
  };
  std::size_t j = 0;
  for (; j + 4 <= looked_up; j += 4) add(j, std::true_type());
  if (j < looked_up) add(j, std::false_type());
  for (int q = 0; q < queries; ++q)
    for (int i = 0; i < blocks; ++i)
      for (int h = 0; h < 2; ++h) out[q][i][h] = sums[q][i][h];
}

// masks[q][b]: bit i is set where code i of block b may pass for query q. Some blocks for some queries at once.
template <int queries, int blocks, class Column>
inline void wide_masks(const ScanJob& job, const Column* column, std::size_t block, std::size_t b,
                       const Quantised* tables, const Limit* limits, std::uint32_t* const* masks) {
  const std::size_t bytes = job.codes.bytes, looked_up = bytes - job.linear;
  const std::uint8_t* codes = job.codes.blocks + block * bytes * scan_block;
  __m512i sums[queries][blocks][2];
  wide_sums<queries, blocks>(codes, bytes, looked_up, tables, sums);
  for (std::size_t l = 0; l < job.linear; ++l)
    for (int i = 0; i < blocks; ++i)
      for (int h = 0; h < 2; ++h) {
        const std::uint8_t* byte = codes + (i * bytes + looked_up + l) * scan_block + 16 * h;
        const __m512i value = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(byte)));
        for (int q = 0; q < queries; ++q) {
          const __m512i factor = _mm512_set1_epi32(tables[q].factors[l]);
          sums[q][i][h] = _mm512_add_epi32(sums[q][i][h], _mm512_srli_epi32(_mm512_mullo_epi32(value, factor), 8));
        }
      }
  for (int q = 0; q < queries; ++q)
    for (int i = 0; i < blocks; ++i) {
      const auto passing = [&](int h) {
        if constexpr (std::is_same_v<Column, NoColumn>)
          return _mm512_cmple_epi32_mask(sums[q][i][h], _mm512_set1_epi32(static_cast<int>(limits[q].flat)));
        else
          return _mm512_cmple_epi32_mask(sums[q][i][h],
                                         wide_limits(column + (block + i) * scan_block + 16 * h, limits[q]));
      };
      masks[q][b + i] = static_cast<std::uint32_t>(passing(0)) | static_cast<std::uint32_t>(passing(1)) << 16;
    }
}

template <int queries, class Column>
inline void wide_masks(const ScanJob& job, const Column* column, std::size_t first, std::size_t count,
                       const Quantised* tables, const Limit* limits, std::uint32_t* const* masks) {
  std::size_t b = 0;
  constexpr int together = queries < 4 ? 2 : 1;
  for (; b + together <= count; b += together)
    wide_masks<queries, together>(job, column, first + b, b, tables, limits, masks);
  for (; b < count; ++b) wide_masks<queries, 1>(job, column, first + b, b, tables, limits, masks);
}

template <int queries>
inline void prune_wide(const ScanJob& job, std::size_t first, std::size_t count, const Quantised* tables,
                       const Limit* limits, std::uint32_t* const* masks) {
  if (job.codes.inverse_bytes)
    wide_masks<queries>(job, job.codes.inverse_bytes, first, count, tables, limits, masks);
  else if (job.codes.inverse)
    wide_masks<queries>(job, job.codes.inverse, first, count, tables, limits, masks);
  else
    wide_masks<queries, NoColumn>(job, nullptr, first, count, tables, limits, masks);
}

}  // namespace antisparse::ANTISPARSE_ISA
