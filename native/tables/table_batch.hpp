// The tables of many queries: tiles of queries, threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "machine/aligned.hpp"
#include "machine/linear.hpp"
#include "machine/threads.hpp"
#include "scan/select.hpp"
#include "tables/nibble_tables.hpp"
#include "tables/point_products.hpp"
#include "tables/rounding.hpp"
#include "tables/table_job.hpp"

namespace antisparse::ANTISPARSE_ISA {

// A few queries at a time, so that all they need stays in cache.
class TableMaker {
 public:
  static constexpr std::size_t rows = 48;

  explicit TableMaker(const TableJob& job)
      : job_(job),
        d_(job.d),
        stride_(padded<double>(d_)),
        columns_((job.columns + Panels<double>::width - 1) / Panels<double>::width * Panels<double>::width),
        points_(job.points ? job.points->half.size() : 0),
        held_(std::min(rows, (job.n + tile_ - 1) / tile_ * tile_)),
        x_(held_ * stride_),
        projected_(held_ * columns_),
        rounded_(job.points ? held_ * 2 * job.points->pairs : 0),
        sums_(held_ * points_),
        values_(points_),
        weights_(job.columns) {}

  // The queries from `first` on.
  void make(std::size_t first) {
    const std::size_t count = std::min(rows, job_.n - first);
    for (std::size_t v = 0; v < count; ++v) {
      double* x = &x_[v * stride_];
      const std::size_t row = (first + v) * d_;
      job_.single ? std::copy_n(job_.single + row, d_, x) : std::copy_n(job_.x + row, d_, x);
      for (std::size_t i = 0; job_.shift && i < d_; ++i) x[i] -= job_.shift[i];
      job_.squares[first + v] = dot(x, x, stride_);
    }
    std::size_t column = 0, from = 0;
    for (const Panels<double>& block : *job_.blocks) {
      for (std::size_t p = 0; p < block.count;
           ++p, column += Panels<double>::width, tick(count * Panels<double>::width * block.d))
        for (std::size_t v = 0; v < count; v += tile_)
          combine_panel<double, tile_>(&projected_[v * columns_ + column], columns_, block.panel(p),
                                       &x_[v * stride_ + from], stride_, block.d);
      from += block.d;
    }
    for (std::size_t v = 0; v < count; ++v) {
      const double unit = round_row(&projected_[v * columns_], job_.columns, job_.at_least, weights_.data());
      if (!(unit == unit)) std::fill_n(weights_.data(), job_.columns, 0);
      std::int32_t* tables = job_.tables + (first + v) * job_.nibbles * 16;
      const std::int64_t peak = job_.signs ? sign_tables(weights_.data(), job_.columns, job_.nibbles, tables)
                                           : choice_tables(weights_.data(), job_.columns, job_.nibbles, tables);
      job_.units[first + v] = job_.signs ? 2 * unit : unit;
      job_.peaks[first + v] = static_cast<double>(peak) * unit;
    }
    if (job_.probes) find(first, count);
  }

 private:
  static constexpr std::size_t tile_ = 6;

  struct Near {
    double value;
    std::uint32_t point;
    double product;
    bool operator<(const Near& other) const {
      return value < other.value || (value == other.value && point < other.point);
    }
  };

  // The nearest points.
  void find(std::size_t first, std::size_t count) {
    const Points& points = *job_.points;
    const std::size_t width = 2 * points.pairs;
    for (std::size_t v = 0; v < count; ++v) {
      const double length = std::sqrt(job_.squares[first + v]);
      const double scale = length > 1e-30 ? Points::longest / length : 0;
      const double* x = &x_[v * stride_];
      for (std::size_t i = 0; i < d_; ++i)
        rounded_[v * width + i] =
            static_cast<std::int16_t>(static_cast<std::int32_t>((x[i] * scale + to_integer) - to_integer));
    }
    // A panel stays in cache while all rows pass it.
    for (std::size_t at = 0; at < points.all; at += Points::width, tick(count * width * Points::width))
      for (std::size_t v = 0; v < count; v += tile_)
        multiply_pairs<tile_>(&points.panels[at * width], &rounded_[v * width], points.pairs, &sums_[v * points_ + at],
                              points_);
    for (std::size_t v = 0; v < count; ++v) {
      choose(&x_[v * stride_], std::sqrt(job_.squares[first + v]), &sums_[v * points_]);
      for (std::size_t i = 0, to = (first + v) * job_.probes; i < job_.probes; ++i, ++to) {
        job_.nearest[to] = order_[i].point;
        job_.products[to] = order_[i].product;
      }
    }
  }

  // The nearest points of a query of a given length, whose products in 16 bits are `sums`: all that may be among them
  // by exact products.
  void choose(const double* x, double length, const std::int32_t* sums) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const Points& points = *job_.points;
    const double product = length * points.longest_point, largest = points.largest_half + product;
    float bound = infinity;
    if (product > 1e-30 && largest < 1e30) {
      const auto step = static_cast<float>(product / (Points::longest * Points::longest));
      for (std::size_t k = 0; k < points_; ++k) values_[k] = points.half[k] - step * static_cast<float>(sums[k]);
      // Rounding moves a vector by half a unit a number at most, and with it a product by so much; float a little more.
      const double moved = std::sqrt(static_cast<double>(d_)) * product / Points::longest * 1.01 + 1e-6 * largest;
      bound = static_cast<float>(bound_kth_least(values_.data(), points_, job_.probes, folded_) + 2 * moved);
    } else {
      std::fill_n(values_.data(), points_, 0.0f);
    }
    order_.clear();
    for (std::size_t at = 0; at < points_; at += 32)
      for (std::uint32_t mask = at_most(&values_[at], bound); mask; mask &= mask - 1) {
        const std::size_t k = at + static_cast<std::size_t>(trailing_zeros(mask));
        if (k >= points.all) break;
        const double exact = dot(x, &points.rows[k * points.stride], points.stride),
                     value = points.exact_half[k] - exact;
        // One that is no number counts as last, and never as unordered.
        order_.push_back({value < infinity ? value : infinity, static_cast<std::uint32_t>(k), exact});
      }
    tick(order_.size() * d_);
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(job_.probes);
    std::partial_sort(order_.begin(), last, order_.end());
  }

  const TableJob& job_;
  std::size_t d_, stride_, columns_, points_, held_;  // columns and points padded; queries there is room for
  Aligned<double> x_, projected_;
  Aligned<std::int16_t> rounded_;
  Aligned<std::int32_t> sums_;
  Aligned<float> values_;
  std::vector<std::int32_t> weights_;
  std::vector<float> folded_;
  std::vector<Near> order_;
};

inline void make_tables(const TableJob& job) {
  run_tasks((job.n + TableMaker::rows - 1) / TableMaker::rows, job.threads, [&] {
    return [maker = TableMaker(job)](std::size_t task) mutable { maker.make(task * TableMaker::rows); };
  });
}

inline void make_sign_tables(const SignTableJob& job) {
  constexpr std::int32_t limit = 1 << 29;
  bool within = true;
  for (std::size_t i = 0; i < job.n * job.bits; ++i) within &= (job.weights[i] > -limit) & (job.weights[i] < limit);
  if (!within) throw std::invalid_argument("weights: one is not within 2^29");
  for (std::size_t i = 0; i < job.n; ++i, tick(16 * job.nibbles))
    sign_tables(job.weights + i * job.bits, job.bits, job.nibbles, job.tables + i * job.nibbles * 16);
}

}  // namespace antisparse::ANTISPARSE_ISA
