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
  constexpr std::size_t panel = alignment / sizeof(T), tile = 6, chunk = 40 * tile;
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
  using P = Pack<T>;
  constexpr std::size_t panel = Points::panel, tile = 6, chunk = 4 * tile;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const Points& points = *job.points;
  const std::size_t d = points.d, width = points.panels * panel;
  run_tasks((job.n + chunk - 1) / chunk, job.threads, [&] {
    return [&, x = Aligned<T>(chunk * d), exact = Aligned<double>(points.stride), out = Aligned<T>(chunk * width),
            minima = std::vector<T>(points.panels), order = std::vector<std::pair<T, std::uint32_t>>(),
            sorted = std::vector<T>()](std::size_t task) mutable {
      const std::size_t row = task * chunk, count = std::min(chunk, job.n - row);
      for (std::size_t i = 0; i < count * d; ++i) x[i] = static_cast<T>(job.x[row * d + i]);
      for (std::size_t p = 0; p < points.panels; ++p)  // a panel stays in cache while all rows pass it
        for (std::size_t v = 0; v < count; v += tile)
          combine_panel<T, tile>(&out[v * width + p * panel], width, &points.packed[p * d * panel], &x[v * d], d, d);
      for (std::size_t v = 0; v < count; ++v) {
        T* values = &out[v * width];
        for (std::size_t p = 0; p < points.panels; ++p) {
          P low = P::all(infinity);
          for (std::size_t j = p * panel; j < (p + 1) * panel; j += P::lanes) {
            // A product beyond the range of float counts as last, and never as unordered.
            const P value = min(P::load(&points.half[j]) - P::load(values + j), P::all(infinity));
            value.store(values + j);
            low = min(value, low);
          }
          minima[p] = least(low);
        }
        // At least `count` points are no further than the count-th least of the panels' minima: others are out.
        T bound = infinity;
        if (job.count == 1) {
          bound = *std::min_element(minima.begin(), minima.end());
        } else if (job.count <= points.panels) {
          sorted = minima;
          const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(job.count - 1);
          std::nth_element(sorted.begin(), middle, sorted.end());
          bound = *middle;
        }
        order.clear();
        for (std::size_t p = 0; p < points.panels; ++p)
          for (std::size_t k = p * panel; minima[p] <= bound && k < std::min((p + 1) * panel, points.all); ++k)
            if (values[k] <= bound) order.emplace_back(values[k], static_cast<std::uint32_t>(k));
        const auto last = order.begin() + static_cast<std::ptrdiff_t>(job.count);
        std::partial_sort(order.begin(), last, order.end());
        std::copy_n(job.x + (row + v) * d, d, exact.data());
        for (std::size_t i = 0, to = (row + v) * job.count; i < job.count; ++i, ++to) {
          job.nearest[to] = order[i].second;
          job.products[to] = dot(exact.data(), &points.rows[order[i].second * points.stride], points.stride);
        }
      }
    };
  });
}

}  // namespace antisparse::ANTISPARSE_ISA
