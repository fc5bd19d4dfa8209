// Exact scores of a query.
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including scan/exact.hpp"
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "machine/watch.hpp"
#include "scan/maxima.hpp"
#include "scan/scan.hpp"

namespace antisparse::ANTISPARSE_ISA {

// A query's tables where the caller keeps them, but for the last byte's, where that depends on the cell.
class ExactTables {
 public:
  ExactTables(const Codes& codes, const Queries& queries, std::size_t linear)
      : codes_(codes), queries_(queries), linear_(linear), largest_(codes.nibbles() + 3) {}

  // Throws std::invalid_argument where an entry is out of range.
  void start(std::size_t query) {
    query_ = query;
    tables_ = queries_.table(query);
    last_byte_ = tables_ + 32 * (codes_.bytes - 1);
    const bool stepped = queries_.cell_steps != nullptr;
    const std::size_t alike = codes_.nibbles() - 2 * linear_ - stepped;
    const Maxima found = maxima(tables_, alike, largest_.data());
    if (found.negative) throw std::invalid_argument("tables: an entry is negative");
    most_ = found.sum;
    alike_largest_ = std::max(found.largest, 1);
    for (std::size_t j = 0; j < linear_; ++j) most_ += 255 * static_cast<std::int64_t>(factor(j));
    if (!stepped) return;
    const Maxima last = maxima(last_byte_ + 16, 1, &largest_[alike]);
    if (last.negative) throw std::invalid_argument("tables: an entry is negative");
    const std::int32_t* steps = queries_.cell_steps + query * queries_.visited;
    const auto most_step = static_cast<std::int64_t>(*std::max_element(steps, steps + queries_.visited));
    most_ += last.largest + 15 * most_step;
    if (last.largest + 15 * most_step > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("tables: an entry of the last nibble and its cell step exceed 2^31");
    std::copy_n(last_byte_, 16, stepped_);
    visit(0);
  }

  // The last byte's tables as they are in a cell (or probe).
  void visit(std::size_t cell) {
    if (!queries_.cell_steps) return;
    const std::int32_t step = queries_.cell_steps[query_ * queries_.visited + cell];
    const std::int32_t* last = tables_ + 16 * (codes_.nibbles() - 1);
    for (std::int32_t value = 0; value < 16; ++value) stepped_[16 + value] = last[value] + value * step;
    last_byte_ = stepped_;
  }

  // D of the code at a place.
  std::int64_t sum(std::size_t place) const {
    const std::uint8_t* code = codes_.blocks + place / scan_block * scan_block * codes_.bytes + place % scan_block;
    // Two entries below 2^31 fit 32 bits, without a sign.
    const auto both = [](const std::int32_t* table, std::uint8_t byte) {
      return static_cast<std::uint32_t>(table[byte >> 4]) + static_cast<std::uint32_t>(table[16 + (byte & 15)]);
    };
    const std::size_t last = codes_.bytes - 1;
    const std::int32_t* table = tables_;
    std::uint64_t total = both(last_byte_, code[last * scan_block]);
    for (std::size_t j = 0; j < last; ++j, table += 32) total += both(table, code[j * scan_block]);
    return static_cast<std::int64_t>(total);
  }

  // The score of the code at a place, in the one order of operations that everything compares with.
  double score(std::size_t place, double unit, double offset, double base) const {
    const std::uint32_t none = 0;
    const auto d = static_cast<double>(sum(place));
    double out;
    scores(place, &none, &d, 1, unit, offset, base, &out);
    return out;
  }

  // The scores of codes whose D are known, at places after the first one.
  void scores(std::size_t first, const std::uint32_t* places, const double* sums, std::size_t count, double unit,
              double offset, double base, double* out) const {
    const auto by_scale = [&](double scale, double sum) {
      const double product = unit * sum;
      const double inner = base + product;
      const double term = scale * inner;
      const double score = offset + term;
      return score == score ? score : std::numeric_limits<double>::infinity();
    };
    if (codes_.inverse_bytes) {
      const double low = codes_.inverse_low, step = codes_.inverse_step;
      const std::uint8_t* bytes = codes_.inverse_bytes + first;
      for (std::size_t i = 0; i < count; ++i) {
        const double more = step * bytes[places[i]];
        out[i] = by_scale(1 / (low + more), sums[i]);
      }
    } else if (codes_.scales) {
      const float* scales = codes_.scales + first;
      for (std::size_t i = 0; i < count; ++i) out[i] = by_scale(scales[places[i]], sums[i]);
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        const double product = unit * sums[i];
        out[i] = offset + product;
      }
    }
  }

  const std::int32_t* tables() const { return tables_; }        // of all bytes but the last, which has
  const std::int32_t* last_byte() const { return last_byte_; }  // these two
  std::size_t bytes() const { return codes_.bytes; }
  std::size_t nibbles() const { return codes_.nibbles(); }
  std::size_t linear() const { return linear_; }
  // The j-th of the linear bytes adds factor * byte.
  std::int32_t factor(std::size_t j) const { return tables_[32 * (codes_.bytes - linear_ + j) + 17]; }
  // The greatest entry of each table, but those of linear bytes; of the last one without a cell's step.
  const std::int32_t* greatest() const { return largest_.data(); }
  // The greatest D that a code can have.
  std::int64_t most() const { return most_; }
  // The greatest entry of a byte that is not linear, at least 1.
  std::int32_t largest() const {
    return queries_.cell_steps ? std::max(alike_largest_, *std::max_element(last_byte_ + 16, last_byte_ + 32))
                               : alike_largest_;
  }

 private:
  const Codes& codes_;
  const Queries& queries_;
  std::size_t linear_, query_ = 0;
  const std::int32_t *tables_ = nullptr, *last_byte_ = nullptr;
  std::int32_t stepped_[32] = {};
  std::int32_t alike_largest_ = 1;
  std::vector<std::int32_t> largest_;
  std::int64_t most_ = 0;
};

}  // namespace antisparse::ANTISPARSE_ISA
