// The tables of many queries: tiles of queries, threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "machine/aligned.hpp"
#include "machine/linear.hpp"
#include "machine/threads.hpp"
#include "tables/nearest_points.hpp"
#include "tables/nibble_tables.hpp"
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
        held_(std::min(rows, (job.n + tile_ - 1) / tile_ * tile_)),
        x_(held_ * stride_),
        projected_(held_ * columns_),
        weights_(job.columns) {
    if (job.probes) nearest_ = std::make_unique<NearestPoints>(*job.points, job.probes, held_);
  }

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

  // The nearest points.
  void find(std::size_t first, std::size_t count) {
    const std::size_t to = first * job_.probes;
    nearest_->find(x_.data(), &job_.squares[first], count, &job_.nearest[to], &job_.products[to]);
  }

  const TableJob& job_;
  std::size_t d_, stride_, columns_, held_;  // columns padded; queries there is room for
  Aligned<double> x_, projected_;
  std::vector<std::int32_t> weights_;
  std::unique_ptr<NearestPoints> nearest_;
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
