// A query's tables of 12-bit entries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "machine/aligned.hpp"
#include "scan/exact_sums.hpp"
#include "scan/prune.hpp"

namespace antisparse::ANTISPARSE_ISA {

#ifdef ANTISPARSE_TARGET_AVX512
// The exact sums of a block cost no more: nothing is rounded.
class FineTables {
 public:
  explicit FineTables(std::size_t) {}
  void build(const ExactTables& exact) { exact_ = &exact; }
  static bool fit(const ExactTables& exact) { return exact.most() < std::int64_t{1} << 32; }
  void sums(const ScanJob& job, std::size_t block, float* out) const {
    std::uint32_t sums[scan_block];
    sums_of_halves<2>(*exact_, job.codes.blocks + block * scan_block * job.codes.bytes, sums);
    for (std::size_t i = 0; i < scan_block; ++i) out[i] = static_cast<float>(sums[i]);
  }
  double step() const { return 1; }
  double slack() const { return 0; }

 private:
  const ExactTables* exact_ = nullptr;
};
#else
// Tables of the high and of the low halves of the entries: with 16-bit sums of both, D is known but for a few
// thousandths, at twice the cost of wide sums. For a block of which many codes pass, and where there is no limit yet.
class FineTables {
 public:
  explicit FineTables(std::size_t nibbles) : used_(nibbles * 16), high_((nibbles + 2) * 16), low_((nibbles + 2) * 16) {}

  void build(const ExactTables& exact) {
    const std::size_t linear = exact.linear();
    // Linear bytes go to the sums of the low halves, and all sums fit 16 bits.
    step_ = std::max({exact.largest() / 4095.0, static_cast<double>(exact.most()) / 65000, 1.0});
    const auto factor = static_cast<float>(step_ == 1 ? 1 : (1 - 1e-6) / step_);
    if (linear) {
      split(exact.tables(), used_ - 32 * linear, factor, high_.data(), low_.data());
    } else {
      split(exact.tables(), used_ - 32, factor, high_.data(), low_.data());
      split(exact.last_byte(), 32, factor, &high_[used_ - 32], &low_[used_ - 32]);
    }
    factors_.clear();
    for (std::size_t j = 0; j < linear; ++j)
      factors_.push_back(static_cast<std::uint16_t>(256 * (1 - 1e-6) * exact.factor(j) / step_));
    none_.assign(linear, 0);
  }

  // So that the sums of low halves fit 16 bits, too.
  static bool fit(const ExactTables& exact) { return exact.nibbles() <= 1024; }

  // The sums of a block's codes: D / step, less than `slack` below it.
  void sums(const ScanJob& job, std::size_t block, float* out) const {
    const Quantised halves[] = {{high_.data(), none_.data()}, {low_.data(), factors_.data()}};
    std::uint16_t sums[scan_block];
    fine_sums(job, block, halves, sums);
    for (std::size_t i = 0; i < scan_block; ++i) out[i] = sums[i];
  }
  double step() const { return step_; }
  // Every entry is rounded down by less than 1, unless the step is 1, a linear byte by less than 2, and all by 1e-6.
  double slack() const {
    const std::size_t linear = factors_.size();
    return (step_ == 1 ? 0.0 : static_cast<double>(used_ / 16 - 2 * linear) + 0.1) + 2 * static_cast<double>(linear);
  }

 private:
  double step_ = 1;
  std::size_t used_;
  Aligned<std::uint8_t> high_, low_;  // and zeros for a byte more
  std::vector<std::uint16_t> factors_, none_;
};
#endif

}  // namespace antisparse::ANTISPARSE_ISA
