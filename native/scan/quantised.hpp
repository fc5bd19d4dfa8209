// A query's tables as bytes, for narrow and for wide sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "machine/aligned.hpp"
#include "scan/exact.hpp"
#include "scan/prune.hpp"

namespace antisparse::ANTISPARSE_ISA {

class Tables {
 public:
  explicit Tables(std::size_t nibbles) : used_(nibbles * 16), entries_((nibbles + 2) * 16) {}

  // For codes with D up to about `bound`. Wide entries stay below 64, so that four add up in a byte.
  void build(const ExactTables& exact, double bound, bool wide) {
    wide_ = wide;
    const double most = std::min(bound, static_cast<double>(exact.most()));
    // The largest entry; a wide sum of them all must fit 16 bits.
    const int cap = wide ? std::min<int>(63, static_cast<int>(65535 / exact.nibbles())) : 255;
    // Below 1 a step gains nothing: the sums are integers.
    step_ = std::max(wide ? static_cast<double>(exact.largest()) / cap : most / 254, 1.0);
    // Rounded down; the factor keeps the rounding of the quotient itself from reaching the next integer.
    inverse_ = static_cast<float>(step_ == 1 ? 1 : (1 - 1e-6) / step_);
    most_ = static_cast<float>(cap);
    quantise(exact.tables(), used_ - 32, inverse_, most_, entries_.data());
    build_last(exact);
    if (wide) std::fill_n(&entries_[used_ - 32 * exact.linear()], 32 * exact.linear(), std::uint8_t{0});
    factors_.clear();
    for (std::size_t j = 0; j < exact.linear(); ++j)
      factors_.push_back(static_cast<std::uint16_t>(std::min(256 * (1 - 1e-6) * exact.factor(j) / step_, 65535.0)));
  }

  // The last byte's tables anew.
  void build_last(const ExactTables& exact) { quantise(exact.last_byte(), 32, inverse_, most_, &entries_[used_ - 32]); }

  bool wide() const { return wide_; }
  double step() const { return step_; }
  Quantised get() const { return {entries_.data(), factors_.data()}; }

 private:
  bool wide_ = false;
  double step_ = 1;
  float inverse_ = 1, most_ = 255;
  std::size_t used_;
  Aligned<std::uint8_t> entries_;  // and zeros for a byte more
  std::vector<std::uint16_t> factors_;
};

}  // namespace antisparse::ANTISPARSE_ISA
