// Many vectors: groups for the annealing, then flips one vector at a time, on threads.
#pragma once

#include "machine/threads.hpp"
#include "refine/anneal.hpp"
#include "refine/flips.hpp"

namespace antisparse::ANTISPARSE_ISA {

// A thread's share of a RefineJob.
class Refinery {
 public:
  static constexpr std::size_t group = Anneal::width;  // vectors a task

  Refinery(const RefineJob& job, const RefineFrame& frame) : job_(job), anneal_(frame), flips_(frame) {}

  void run(std::size_t task) {
    const std::size_t first = task * group, count = std::min(group, job_.n - first);
    if (job_.sweeps > 0)
      anneal_.run(job_.correlations + first * job_.m, job_.scales ? job_.scales + first : nullptr, count, job_.sweeps);
    for (std::size_t v = 0; v < count; ++v) {
      std::uint8_t* bits = job_.bits + (first + v) * ((job_.m + 7) / 8);
      for (std::size_t j = 0; j < job_.m; ++j)
        flips_.b[j] = job_.sweeps > 0 ? anneal_.sign(v, j) : bits[j / 8] >> (7 - j % 8) & 1 ? 1.0f : -1.0f;
      vector(first + v);
      std::fill_n(bits, (job_.m + 7) / 8, std::uint8_t{0});
      for (std::size_t j = 0; j < job_.m; ++j)
        bits[j / 8] |= static_cast<std::uint8_t>((flips_.b[j] > 0) << (7 - j % 8));
    }
  }

 private:
  // Signs for a scale, the best scale for them, and again.
  void vector(std::size_t row) {
    const float* correlations = job_.correlations + row * job_.m;
    float scale = job_.scales ? job_.scales[row] : 1;
    flips_.start(correlations);
    for (std::size_t turn = 0; turn <= job_.turns && job_.flips > 0; ++turn) {
      if (turn > 0) scale = flips_.scale(job_.least_scale);
      flips_.run(job_.flips, job_.tenure, job_.objective, scale);
      flips_.start(correlations);
    }
    if (job_.scales) job_.scales[row] = flips_.scale(job_.least_scale);
    job_.dot[row] = flips_.dot();
    job_.squared_norm[row] = flips_.squared_norm();
  }

  const RefineJob& job_;
  Anneal anneal_;
  Flips flips_;
};

inline void refine(const RefineJob& job) {
  const RefineFrame frame(job);
  run_tasks((job.n + Refinery::group - 1) / Refinery::group, job.threads,
            [&] { return [refinery = Refinery(job, frame)](std::size_t task) mutable { refinery.run(task); }; });
}

}  // namespace antisparse::ANTISPARSE_ISA
