// A query's tables as bytes, for narrow and for wide sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "machine/aligned.hpp"
#include "scan/exact.hpp"
#include "scan/prune.hpp"

namespace antisparse::ANTISPARSE_ISA {

class Tables {
 public:
  explicit Tables(const ScanJob& job)
      : used_(job.codes.nibbles() * 16),
        entries_((job.codes.bytes + tables_together) / tables_together * tables_together * 32) {}

  // For codes with D up to about `bound`: larger sums may saturate. A narrow sum saturates as a whole, a wide one in
  // every group of nibbles that share a byte.
  void build(const ExactTables& exact, double bound, bool wide) {
    wide_ = wide;
    const double most = std::min(bound, static_cast<double>(exact.most()));
    const double step = wide ? wide_step(exact, most) : most / 254;
    // Below 1 a step gains nothing, since the sums are integers.
    step_ = std::max(step, 1.0);
    // Rounded down; the factor keeps the rounding of the quotient itself from reaching the next integer.
    inverse_ = static_cast<float>(step_ == 1 ? 1 : (1 - 1e-6) / step_);
    quantise(exact.tables(), used_ - 32, inverse_, 255, entries_.data());
    std::fill(&entries_[used_ - 32], &entries_[0] + entries_.size(), std::uint8_t{0});
    if (wide) put_together();
    build_last(exact);
    for (std::size_t j = exact.bytes() - exact.linear(); wide && j < exact.bytes(); ++j) put(j, none_);
    factors_.clear();
    for (std::size_t j = 0; j < exact.linear(); ++j)
      factors_.push_back(static_cast<std::uint16_t>(std::min(256 * (1 - 1e-6) * exact.factor(j) / step_, 65535.0)));
  }

  // The last byte's tables anew.
  void build_last(const ExactTables& exact) {
    std::uint8_t last[32];
    quantise(exact.last_byte(), 32, inverse_, 255, last);
    put(exact.bytes() - 1, last);
  }

  bool wide() const { return wide_; }
  double step() const { return step_; }
  Quantised get() const { return {entries_.data(), factors_.data()}; }

 private:
  // A longer step takes more off a sum by rounding, half a step a nibble, and a shorter one by saturation. The step
  // that takes least off the sum of a code near the bound, some codes then passing in vain. Such a code has about the
  // same share of the greatest entries in every group, give or take a part of them.
  double wide_step(const ExactTables& exact, double bound) {
    const std::size_t nibbles = exact.nibbles() - 2 * exact.linear();
    const float share = static_cast<float>(bound / static_cast<double>(exact.most()));
    groups_.clear();
    float total = 0;
    for (std::size_t g = 0; g < nibbles; g += share_a_byte) {
      float sum = 0;
      for (std::size_t i = g; i < std::min(g + share_a_byte, nibbles); ++i)
        sum += static_cast<float>(exact.greatest()[i]);
      groups_.push_back(sum);
      total += sum;
    }
    constexpr float part = share_a_byte == 2 ? 0.2f : 0.14f;
    const float mean = total * share / (255 * static_cast<float>(groups_.size()));
    float best = 0, least = std::numeric_limits<float>::infinity();
    for (float step = 1.4f * mean; step < 8 * mean; step *= 1.25f) {
      // The mean of what a normal variable exceeds a limit by, about, in terms of its deviation.
      float excess = 0;
      for (const float most : groups_) {
        const float deviation = most * part, over = std::max(0.0f, most * share + 2 * deviation - 255 * step);
        excess += 0.1f * over * over / (deviation + 1);
      }
      const float off = excess + 0.5f * step * static_cast<float>(nibbles);
      if (off < least) {
        least = off;
        best = step;
      }
    }
    return best;
  }

  // The tables of a byte: of its high nibble and, after those of others, of its low one.
  void put(std::size_t byte, const std::uint8_t* tables) {
    const std::size_t together = wide_ ? tables_together : 1;
    std::uint8_t* out = &entries_[byte / together * together * 32 + byte % together * 16];
    std::copy_n(tables, 16, out);
    std::copy_n(tables + 16, 16, out + 16 * together);
  }

  // All from the order of nibbles.
  void put_together() {
    constexpr std::size_t size = 32 * tables_together;
    std::uint8_t tables[size];
    for (std::size_t first = 0; tables_together > 1 && first < entries_.size(); first += size) {
      std::copy_n(&entries_[first], size, tables);
      for (std::size_t i = 0; i < tables_together; ++i) put(first / 32 + i, tables + 32 * i);
    }
  }

  static constexpr std::uint8_t none_[32] = {};
  bool wide_ = false;
  double step_ = 1;
  float inverse_ = 1;
  std::size_t used_;
  std::vector<float> groups_;      // the sums of the greatest entries that share a byte
  Aligned<std::uint8_t> entries_;  // and zeros for some bytes more
  std::vector<std::uint16_t> factors_;
};

}  // namespace antisparse::ANTISPARSE_ISA
