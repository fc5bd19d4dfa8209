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
  // Steps are half as long where many codes are looked for among few, or codes are long: rounding then lets so many
  // pass that to score them costs more than what a group that saturates lets pass.
  explicit Tables(const ScanJob& job)
      : most_room_(16 * job.k * job.codes.nibbles() > job.codes.places ? 2.5 : 5),
        used_(job.codes.nibbles() * 16),
        entries_(used_ + 32) {}

  // For codes with D up to about `bound`: larger sums may saturate. A narrow sum saturates as a whole; a wide one in
  // every group of four nibbles, so that a code near the bound must have room in each, whatever share of D it has.
  void build(const ExactTables& exact, double bound, bool wide) {
    wide_ = wide;
    const double most = std::min(bound, static_cast<double>(exact.most()));
    const auto groups = static_cast<double>((exact.nibbles() - 2 * exact.linear() + 3) / 4);
    const double room = std::min(most_room_, groups);  // times the mean share of a group
    // Below 1 a step gains nothing, since the sums are integers; nor does room beyond the largest group.
    const double step =
        wide ? std::min(room * most / (255 * groups), most_room_ / 5 * exact.largest() / 63) : most / 254;
    step_ = std::max(step, 1.0);
    // Rounded down; the factor keeps the rounding of the quotient itself from reaching the next integer.
    inverse_ = static_cast<float>(step_ == 1 ? 1 : (1 - 1e-6) / step_);
    quantise(exact.tables(), used_ - 32, inverse_, 255, entries_.data());
    build_last(exact);
    if (wide) std::fill_n(&entries_[used_ - 32 * exact.linear()], 32 * exact.linear(), std::uint8_t{0});
    factors_.clear();
    for (std::size_t j = 0; j < exact.linear(); ++j)
      factors_.push_back(static_cast<std::uint16_t>(std::min(256 * (1 - 1e-6) * exact.factor(j) / step_, 65535.0)));
  }

  // The last byte's tables anew.
  void build_last(const ExactTables& exact) { quantise(exact.last_byte(), 32, inverse_, 255, &entries_[used_ - 32]); }

  bool wide() const { return wide_; }
  double step() const { return step_; }
  Quantised get() const { return {entries_.data(), factors_.data()}; }

 private:
  bool wide_ = false;
  double step_ = 1;
  float inverse_ = 1;
  double most_room_;
  std::size_t used_;
  Aligned<std::uint8_t> entries_;  // and zeros for a byte more
  std::vector<std::uint16_t> factors_;
};

}  // namespace antisparse::ANTISPARSE_ISA
