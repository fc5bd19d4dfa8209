// The projection: panels of columns, tiles of rows, threads.
#pragma once

#include <algorithm>
#include <limits>

#include "machine/aligned.hpp"
#include "machine/linear.hpp"
#include "machine/threads.hpp"
#include "projection/project.hpp"

namespace antisparse::ANTISPARSE_ISA {

inline void project(const ProjectJob& job) {
  using T = double;
  constexpr std::size_t panel = Panels::width, tile = 6, chunk = 40 * tile;
  const Panels packed(job.m, job.d, job.columns);
  run_tasks((job.n + chunk - 1) / chunk, job.threads, [&] {
    return [&, rows = Aligned<T>(tile * job.d), out = Aligned<T>(tile * panel)](std::size_t task) mutable {
      const std::size_t end = std::min((task + 1) * chunk, job.n);
      for (std::size_t row = task * chunk; row < end; row += tile) {
        const std::size_t count = std::min(tile, end - row);
        std::copy_n(job.x + row * job.d, count * job.d, rows.data());
        T least[tile];
        std::fill_n(least, tile, std::numeric_limits<T>::infinity());
        if (job.nearest) std::fill_n(job.nearest + row, count, std::int64_t{0});
        for (std::size_t p = 0; p < packed.count; ++p) {
          combine_panel<T, tile>(out.data(), panel, packed.panel(p), rows.data(), job.d, job.d);
          tick(tile * panel * job.d);
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

}  // namespace antisparse::ANTISPARSE_ISA
