// The quantised pass with AVX-512 (BW, VBMI): see prune.hpp. A register holds two bytes of the 32 codes of a block.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "scan/entries_avx2.hpp"
#include "scan/scan.hpp"

namespace antisparse::ANTISPARSE_ISA {

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

// The limits of the codes of one block or two, from their column, as 8-bit or 16-bit integers, rounded down, saturated.
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
  // A block each.
  template <class Column>
  static void shorts(const Column* column, const Limit& limit, __m512i out[2]) {
    __m512i v[4];
    lanes(column, limit, v);
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    for (int b = 0; b < blocks; ++b)
      out[b] = _mm512_permutexvar_epi64(order, _mm512_packus_epi32(v[2 * b], v[2 * b + 1]));
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

// The sums of codes 0..31: of even and of odd numbered ones, and of two halves. The even ones stand with 256 times the
// odd ones in `both`. All add up to less than 2^16.
inline __m512i in_order(__m512i both, __m512i odd) {
  const __m512i even = _mm512_sub_epi16(both, _mm512_slli_epi16(odd, 8));
  const auto halves = [](__m512i v) {
    return _mm256_add_epi16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
  };
  const __m512i wide_even = _mm512_cvtepu16_epi32(halves(even)), wide_odd = _mm512_cvtepu16_epi32(halves(odd));
  return _mm512_or_si512(wide_even, _mm512_slli_epi32(wide_odd, 16));
}

// 16-bit sums of the codes of some blocks, saturated; gathered as prune_avx2.hpp says, but that the four entries that
// add up in a byte are those of every other byte of a code.
template <int queries, int blocks>
inline void wide_sums(const ScanJob& job, std::size_t block, const Quantised* tables, __m512i sums[queries][blocks]) {
  constexpr std::size_t longest = 512;
  const std::size_t bytes = job.codes.bytes, looked_up = bytes - job.linear;
  const std::uint8_t* codes = job.codes.blocks + block * bytes * scan_block;
  for (std::size_t first = 0; first == 0 || first < looked_up; first += longest) {
    __m512i both[queries][blocks], odd[queries][blocks];
    for (int q = 0; q < queries; ++q)
      for (int b = 0; b < blocks; ++b) both[q][b] = odd[q][b] = _mm512_setzero_si512();
    const auto gather = [&](int q, int b, __m512i sum) {
      both[q][b] = _mm512_add_epi16(both[q][b], sum);
      odd[q][b] = _mm512_add_epi16(odd[q][b], _mm512_srli_epi16(sum, 8));
    };
    const std::size_t end = std::min(first + longest, looked_up);
    std::size_t j = first;
    for (; j + 4 <= end; j += 4)
      for (int b = 0; b < blocks; ++b) {
        const std::uint8_t* four = codes + (b * bytes + j) * scan_block;
        if (queries == 1)
          for (std::size_t i = 0; i < 4; i += 2) ask_ahead(four + i * scan_block);
        const Places place[2] = {places<false>(four), places<false>(four + 2 * scan_block)};
        for (int q = 0; q < queries; ++q) {
          const std::uint8_t* t = tables[q].entries + 32 * j;
          gather(
              q, b,
              _mm512_adds_epu8(place[0].look_up(_mm512_loadu_si512(t)), place[1].look_up(_mm512_loadu_si512(t + 64))));
        }
      }
    const auto rest = [&](auto last) {
      for (int b = 0; b < blocks; ++b) {
        const Places place = places<last>(codes + (b * bytes + j) * scan_block);
        for (int q = 0; q < queries; ++q) gather(q, b, place.look_up(_mm512_loadu_si512(tables[q].entries + 32 * j)));
      }
    };
    for (; j + 2 <= end; j += 2) rest(std::false_type());
    if (j < end) rest(std::true_type());
    for (int q = 0; q < queries; ++q)
      for (int b = 0; b < blocks; ++b) {
        const __m512i part = in_order(both[q][b], odd[q][b]);
        sums[q][b] = first ? _mm512_adds_epu16(sums[q][b], part) : part;
      }
  }
  for (int q = 0; q < queries; ++q)
    for (std::size_t j = 0; j < job.linear; ++j) {
      const __m512i factor = _mm512_set1_epi16(static_cast<short>(tables[q].factors[j]));
      for (int b = 0; b < blocks; ++b) {
        const auto* byte = reinterpret_cast<const __m256i*>(codes + (b * bytes + looked_up + j) * scan_block);
        const __m512i high = _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm256_loadu_si256(byte)), 8);
        sums[q][b] = _mm512_adds_epu16(sums[q][b], _mm512_mulhi_epu16(high, factor));
      }
    }
}

// As prune_narrow, by wide sums.
template <int queries>
inline void prune_wide(const ScanJob& job, std::size_t first, std::size_t count, const Quantised* tables,
                       const Limit* limits, std::uint32_t* const* masks) {
  const auto some = [&](std::size_t b, auto blocks) {
    __m512i sums[queries][blocks];
    wide_sums<queries, blocks>(job, first + b, tables, sums);
    for (int q = 0; q < queries; ++q) {
      __m512i limit[blocks];
      const std::size_t at = (first + b) * scan_block;
      if (job.codes.inverse_bytes)
        Limits<blocks>::shorts(job.codes.inverse_bytes + at, limits[q], limit);
      else if (job.codes.inverse)
        Limits<blocks>::shorts(job.codes.inverse + at, limits[q], limit);
      else
        std::fill_n(limit, int{blocks}, _mm512_set1_epi16(static_cast<short>(static_cast<int>(limits[q].flat))));
      for (int i = 0; i < blocks; ++i) masks[q][b + i] = _mm512_cmple_epu16_mask(sums[q][i], limit[i]);
    }
  };
  std::size_t b = 0;
  for (; queries > 1 && b + 2 <= count; b += 2) some(b, std::integral_constant<int, 2>());
  for (; b < count; ++b) some(b, std::integral_constant<int, 1>());
}

}  // namespace antisparse::ANTISPARSE_ISA
