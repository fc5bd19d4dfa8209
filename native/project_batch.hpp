// The projection: panels of columns, tiles of rows, threads.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "aligned.hpp"
#include "linear.hpp"
#include "project.hpp"
#include "threads.hpp"

namespace antisparse::ANTISPARSE_ISA {

inline void project(const ProjectJob& job) {
  using T = double;
  constexpr std::size_t panel = alignment / sizeof(T), tile = 4, chunk = 256;
  const std::size_t panels = (job.columns + panel - 1) / panel;
  Aligned<T> packed(panels * job.d * panel);
  for (std::size_t i = 0; i < job.d; ++i)
    for (std::size_t j = 0; j < job.columns; ++j)
      packed[(j / panel * job.d + i) * panel + j % panel] = job.m[i * job.columns + j];
  run_tasks((job.n + chunk - 1) / chunk, job.threads, [&] {
    return [&, rows = Aligned<T>(tile * job.d), out = Aligned<T>(tile * panel)](std::size_t task) mutable {
      const std::size_t end = std::min((task + 1) * chunk, job.n);
      for (std::size_t row = task * chunk; row < end; row += tile) {
        const std::size_t count = std::min(tile, end - row);
        std::copy_n(job.x + row * job.d, count * job.d, rows.data());
        T least[tile];
        std::fill_n(least, tile, std::numeric_limits<T>::infinity());
        if (job.nearest) std::fill_n(job.nearest + row, count, std::int64_t{0});
        for (std::size_t p = 0; p < panels; ++p) {
          combine_panel<T, tile>(out.data(), panel, &packed[p * job.d * panel], rows.data(), job.d, job.d);
          const std::size_t width = std::min(panel, job.columns - p * panel);
          for (std::size_t v = 0; v < count; ++v) {
            if (job.out) std::copy_n(&out[v * panel], width, job.out + (row + v) * job.columns + p * panel);
            for (std::size_t j = 0; job.nearest && j < width; ++j) {
              const T value = job.half[p * panel + j] - out[v * panel + j];
              if (!(value < least[v])) continue;
              least[v] = value;
              job.nearest[row + v] = static_cast<std::int64_t>(p * panel + j);
            }
          }
        }
      }
    };
  });
}

inline void nearest(const NearestJob& job) {
  using T = float;
  constexpr std::size_t panel = alignment / sizeof(T), tile = 4, chunk = 32;
  const std::size_t panels = (job.all + panel - 1) / panel;
  Aligned<T> packed(panels * job.d * panel), half(panels * panel);
  for (std::size_t i = 0; i < job.d; ++i)
    for (std::size_t j = 0; j < job.all; ++j)
      packed[(j / panel * job.d + i) * panel + j % panel] = static_cast<T>(job.m[i * job.all + j]);
  for (std::size_t j = 0; j < half.size(); ++j)  // padding is last of all
    half[j] = j < job.all ? static_cast<T>(job.half[j]) : std::numeric_limits<T>::infinity();
  std::vector<double> rows(job.all * job.d);  // m by columns
  for (std::size_t i = 0; i < job.d; ++i)
    for (std::size_t j = 0; j < job.all; ++j) rows[j * job.d + i] = job.m[i * job.all + j];
  const std::size_t stride = panels * panel;
  run_tasks((job.n + chunk - 1) / chunk, job.threads, [&] {
    return [&, x = Aligned<T>(chunk * job.d), out = Aligned<T>(chunk * stride),
            order = std::vector<std::pair<T, std::uint32_t>>(),
            minima = std::vector<T>(panels)](std::size_t task) mutable {
      const std::size_t row = task * chunk, count = std::min(chunk, job.n - row);
      for (std::size_t i = 0; i < count * job.d; ++i) x[i] = static_cast<T>(job.x[row * job.d + i]);
      for (std::size_t p = 0; p < panels; ++p)  // a panel stays in cache while all rows pass it
        for (std::size_t v = 0; v < count; v += tile)
          combine_panel<T, tile>(&out[v * stride + p * panel], stride, &packed[p * job.d * panel], &x[v * job.d], job.d,
                                 job.d);
      for (std::size_t v = 0; v < count; ++v) {
        // At least `count` columns are no greater than the count-th least of the panels' minima: others are out. A
        // product beyond the range of float counts as last, and never as unordered.
        T* values = &out[v * stride];
        T bound = std::numeric_limits<T>::infinity();
        for (std::size_t p = 0; p < panels; ++p) {
          T low = bound;
          for (std::size_t j = p * panel; j < (p + 1) * panel; ++j) {
            const T value = half[j] - values[j];
            values[j] = value == value ? value : std::numeric_limits<T>::infinity();
            low = values[j] < low ? values[j] : low;
          }
          minima[p] = low;
        }
        if (job.count < panels) {
          std::nth_element(minima.begin(), minima.begin() + static_cast<std::ptrdiff_t>(job.count - 1), minima.end());
          bound = minima[job.count - 1];
        }
        order.clear();
        for (std::size_t j = 0; j < job.all; ++j)
          if (!(values[j] > bound)) order.emplace_back(values[j], static_cast<std::uint32_t>(j));
        const auto middle = order.begin() + static_cast<std::ptrdiff_t>(job.count - 1);
        std::nth_element(order.begin(), middle, order.end());
        std::sort(order.begin(), middle + 1, [](const auto& a, const auto& b) { return a.second < b.second; });
        for (std::size_t k = 0; k < job.count; ++k) {
          const std::size_t column = order[k].second;
          double sums[4] = {};
          const double *a = job.x + (row + v) * job.d, *b = &rows[column * job.d];
          for (std::size_t i = 0; i < job.d; ++i) sums[i % 4] += a[i] * b[i];
          job.columns[(row + v) * job.count + k] = static_cast<std::int64_t>(column);
          job.products[(row + v) * job.count + k] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        }
      }
    };
  });
}

}  // namespace antisparse::ANTISPARSE_ISA
