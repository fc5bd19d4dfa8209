// Forms: tiles of queries, threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "aligned.hpp"
#include "form.hpp"
#include "linear.hpp"
#include "select.hpp"
#include "threads.hpp"

namespace antisparse::ANTISPARSE_ISA {

// Integers below 2^24 times a power of two, which is returned: sums of integers are exact in any order. `at_least`,
// too, is below 2^23 of that unit. NaN where a value is not finite.
inline double round_row(const double* values, std::size_t count, double at_least, std::int32_t* out) {
  constexpr std::size_t lanes = 8;
  double largest[lanes] = {at_least}, zeros[lanes] = {};  // NaN where there is a value that is not finite
  const auto meet = [&](std::size_t lane, double value) {
    const double size = std::abs(value);
    largest[lane] = size > largest[lane] ? size : largest[lane];
    zeros[lane] += 0 * value;
  };
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) meet(lane, values[at + lane]);
  for (; at < count; ++at) meet(0, values[at]);
  const double most = *std::max_element(largest, largest + lanes);
  if (std::accumulate(zeros, zeros + lanes, 0.0) != 0) return std::numeric_limits<double>::quiet_NaN();
  int exponent = 0;
  std::frexp(most, &exponent);
  exponent = most > 0 ? std::max(exponent - 23, -1022) : 0;
  const double inverse = std::ldexp(1.0, -exponent);
  constexpr double round =
      6755399441055744.0;  // 1.5 * 2^52: what is added to it is rounded to an integer, half to even
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::int32_t>((values[i] * inverse + round) - round);
  return std::ldexp(1.0, exponent);
}

inline void round_rows(const double* values, std::size_t n, std::size_t count, double at_least, std::int32_t* rounded,
                       double* units) {
  for (std::size_t i = 0; i < n; ++i) units[i] = round_row(values + i * count, count, at_least, rounded + i * count);
}

// A few queries at a time, so that all they need stays in cache.
class FormMaker {
 public:
  static constexpr std::size_t rows = 48;

  explicit FormMaker(const FormJob& job)
      : job_(job),
        d_(job.frame->d),
        stride_(padded<double>(d_)),
        columns_(job.frame->count * Panels<double>::width),
        points_(job.points ? job.points->half.size() : 0),
        x_(rows * stride_),
        projected_(rows * columns_),
        single_(job.points ? rows * d_ : 0),
        values_(rows * points_) {}

  // The queries from `first` on.
  void make(std::size_t first) {
    const std::size_t count = std::min(rows, job_.n - first);
    for (std::size_t v = 0; v < count; ++v) {
      double* x = &x_[v * stride_];
      const std::size_t from = (first + v) * d_;
      job_.single ? std::copy_n(job_.single + from, d_, x) : std::copy_n(job_.x + from, d_, x);
      for (std::size_t i = 0; job_.shift && i < d_; ++i) x[i] -= job_.shift[i];
      job_.squares[first + v] = dot(x, x, stride_);
    }
    multiply(*job_.frame, x_.data(), stride_, count, projected_.data(), columns_);
    for (std::size_t v = 0; v < count; ++v) {
      std::int32_t* weights = job_.weights + (first + v) * job_.bits;
      const double unit = round_row(&projected_[v * columns_], job_.bits, job_.at_least, weights);
      std::int64_t total = 0;
      if (!(unit == unit)) std::fill_n(weights, job_.bits, 0);
      for (std::size_t j = 0; j < job_.bits; ++j) total += std::abs(weights[j]);
      job_.units[first + v] = unit;
      job_.totals[first + v] = static_cast<double>(total) * unit;
    }
    if (job_.probes) find(first, count);
  }

 private:
  static constexpr std::size_t tile_ = 6;

  // out = x m, the rows of x and of out so far apart; a panel stays in cache while all rows pass it.
  template <class T>
  static void multiply(const Panels<T>& m, const T* x, std::size_t stride, std::size_t count, T* out,
                       std::size_t width) {
    for (std::size_t p = 0; p < m.count; ++p)
      for (std::size_t v = 0; v < count; v += tile_)
        combine_panel<T, tile_>(out + v * width + p * Panels<T>::width, width, m.panel(p), x + v * stride, stride, m.d);
  }

  // The nearest points.
  void find(std::size_t first, std::size_t count) {
    const Points& points = *job_.points;
    for (std::size_t v = 0; v < count; ++v)
      for (std::size_t i = 0; i < d_; ++i) single_[v * d_ + i] = static_cast<float>(x_[v * stride_ + i]);
    multiply(points.panels, single_.data(), d_, count, values_.data(), points_);
    for (std::size_t v = 0; v < count; ++v) {
      choose(&values_[v * points_]);
      for (std::size_t i = 0, to = (first + v) * job_.probes; i < job_.probes; ++i, ++to) {
        job_.nearest[to] = order_[i].second;
        job_.products[to] = dot(&x_[v * stride_], &points.rows[order_[i].second * points.stride], points.stride);
      }
    }
  }

  // The nearest of the points whose products with a query are given, in order_.
  void choose(float* values) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const Points& points = *job_.points;
    // A product beyond the range of float counts as last, and never as unordered.
    for (std::size_t k = 0; k < points_; ++k) {
      const float value = points.half[k] - values[k];
      values[k] = value < infinity ? value : infinity;
    }
    const float bound = bound_kth_least(values, points_, job_.probes, folded_);
    order_.clear();
    for (std::size_t at = 0; at < points_; at += 32)
      for (std::uint32_t mask = at_most(values + at, bound); mask; mask &= mask - 1) {
        const std::size_t k = at + static_cast<std::size_t>(trailing_zeros(mask));
        if (k < points.all) order_.emplace_back(values[k], static_cast<std::uint32_t>(k));
      }
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(job_.probes);
    std::partial_sort(order_.begin(), last, order_.end());
  }

  const FormJob& job_;
  std::size_t d_, stride_, columns_, points_;  // columns and points padded
  Aligned<double> x_, projected_;
  Aligned<float> single_, values_;
  std::vector<float> folded_;
  std::vector<std::pair<float, std::uint32_t>> order_;
};

inline void make_forms(const FormJob& job) {
  run_tasks((job.n + FormMaker::rows - 1) / FormMaker::rows, job.threads,
            [&] { return [maker = FormMaker(job)](std::size_t task) mutable { maker.make(task * FormMaker::rows); }; });
}

}  // namespace antisparse::ANTISPARSE_ISA
