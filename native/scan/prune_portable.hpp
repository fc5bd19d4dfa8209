// The quantised pass for any CPU: see prune.hpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "scan/scan.hpp"

namespace antisparse::ANTISPARSE_ISA {

constexpr std::size_t share_a_byte = 4, tables_together = 1;
constexpr float most_wide = 65535;

// out = min(entries * factor, most), rounded down.
inline void quantise(const std::int32_t* entries, std::size_t count, float factor, float most, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::uint8_t>(std::min(static_cast<float>(entries[i]) * factor, most));
}

// The integer parts of entries * factor, below 4096, in halves.
inline void split(const std::int32_t* entries, std::size_t count, float factor, std::uint8_t* high, std::uint8_t* low) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto entry = static_cast<std::int32_t>(static_cast<float>(entries[i]) * factor);
    high[i] = static_cast<std::uint8_t>(entry >> 6);
    low[i] = static_cast<std::uint8_t>(entry & 63);
  }
}

// The sums of the codes of a block; the last `linear` bytes count by their factors.
inline void block_sums(const Codes& codes, std::size_t linear, std::size_t block, const Quantised& tables, int* sums) {
  const std::uint8_t* bytes = codes.blocks + block * codes.bytes * scan_block;
  const std::size_t looked_up = codes.bytes - linear;
  std::fill_n(sums, scan_block, 0);
  for (std::size_t j = 0; j < looked_up; ++j) {
    const std::uint8_t *high = tables.entries + 32 * j, *low = high + 16;
    for (std::size_t i = 0; i < scan_block; ++i) {
      const std::uint8_t byte = bytes[j * scan_block + i];
      sums[i] += high[byte >> 4] + low[byte & 15];
    }
  }
  for (std::size_t j = 0; j < linear; ++j)
    for (std::size_t i = 0; i < scan_block; ++i)
      sums[i] += bytes[(looked_up + j) * scan_block + i] * tables.factors[j] >> 8;
}

// 64 times the sums of high halves and the sums of low ones, with which the linear bytes count.
inline void fine_sums(const ScanJob& job, std::size_t block, const Quantised halves[2], std::uint16_t* out) {
  int high[scan_block], low[scan_block];
  block_sums(job.codes, job.linear, block, halves[0], high);
  block_sums(job.codes, job.linear, block, halves[1], low);
  for (std::size_t i = 0; i < scan_block; ++i) out[i] = static_cast<std::uint16_t>(64 * high[i] + low[i]);
}

// masks[q][b]: bit i is set where code i of block b may pass for query q.
template <int queries>
inline void prune_any(const ScanJob& job, std::size_t linear, std::size_t first, std::size_t count,
                      const Quantised* tables, const Limit* limits, std::uint32_t* const* masks, int most) {
  const Codes& codes = job.codes;
  for (std::size_t b = 0; b < count; ++b)
    for (int q = 0; q < queries; ++q) {
      int sums[scan_block];
      block_sums(codes, linear, first + b, tables[q], sums);
      std::uint32_t mask = 0;
      for (std::size_t i = 0; i < scan_block; ++i) {
        float limit = limits[q].flat;
        if (codes.column()) {
          const std::size_t at = (first + b) * scan_block + i;
          const float x = codes.inverse_bytes ? static_cast<float>(codes.inverse_bytes[at]) : codes.inverse[at];
          limit = limits[q].slope * x + limits[q].base;
        }
        // A code without a limit, whose inverse scale is NaN, passes.
        mask |= static_cast<std::uint32_t>(!(static_cast<float>(std::min(sums[i], most)) > limit)) << i;
      }
      masks[q][b] = mask;
    }
}

// By narrow sums, which look up linear bytes like any other.
template <int queries>
inline void prune_narrow(const ScanJob& job, std::size_t first, std::size_t count, const Quantised* tables,
                         const Limit* limits, std::uint32_t* const* masks) {
  prune_any<queries>(job, 0, first, count, tables, limits, masks, 255);
}

// By wide sums.
template <int queries>
inline void prune_wide(const ScanJob& job, std::size_t first, std::size_t count, const Quantised* tables,
                       const Limit* limits, std::uint32_t* const* masks) {
  prune_any<queries>(job, job.linear, first, count, tables, limits, masks, 65535);
}

}  // namespace antisparse::ANTISPARSE_ISA
