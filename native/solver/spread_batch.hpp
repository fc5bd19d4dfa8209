// Many vectors: threads, chunks of vectors that share the rotation, scaling, and the outputs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "machine/threads.hpp"
#include "solver/path.hpp"

namespace antisparse::ANTISPARSE_ISA {

// A worker owns all the memory its vectors need: nothing grows with n.
template <class T>
class Worker {
 public:
  static constexpr std::size_t chunk = 16, tile = 4;

  explicit Worker(const SpreadJob<T>& job)
      : job_(job), solver_(*job.frame, *job.double_frame), scaled_(chunk * job.frame->dp), rotated_(scaled_.size()) {}

  // Rows [begin, end), at most a chunk. Stops at the first failure.
  SpreadFailure run(std::size_t begin, std::size_t end) {
    load(begin, end - begin);
    const Aligned<T>& vectors = job_.frame->rotation.empty() ? scaled_ : rotated_;
    for (std::size_t row = begin; row < end; ++row) {
      // Dividing y and A by powers of two divides x and t by 2^(ey - ea) and h by 2^(ey + ea), exactly.
      const int y_exponent = exponent_[row - begin], h_exponent = y_exponent + job_.frame_exponent;
      const double h = job_.relative ? job_.h : std::ldexp(job_.h, -h_exponent);
      const T* y = &vectors[(row - begin) * job_.frame->dp];
      const Answer answer = solver_.solve(y, h, job_.relative, job_.max_steps);
      Status status = answer.status;
      if (status == Status::ok && !write(row, answer, y_exponent - job_.frame_exponent, h_exponent))
        status = Status::overflow;
      if (status != Status::ok) return {status, row, answer.certificate};
    }
    return {};
  }

 private:
  void load(std::size_t row, std::size_t count) {
    const std::size_t d = job_.frame->d, dp = job_.frame->dp;
    for (std::size_t v = 0; v < count; ++v) {
      const T* y = job_.vectors + (row + v) * d;
      T largest = 0;
      for (std::size_t i = 0; i < d; ++i) largest = std::max(largest, std::abs(y[i]));
      exponent_[v] = largest > 0 ? std::ilogb(largest) : 0;
      // 2^-exponent may be out of range where y is subnormal: two factors that are not.
      const int half = exponent_[v] / 2;
      const T first = std::ldexp(T(1), -half), second = std::ldexp(T(1), half - exponent_[v]);
      for (std::size_t i = 0; i < d; ++i) scaled_[v * dp + i] = y[i] * first * second;
    }
    if (job_.frame->rotation.empty()) return;
    constexpr std::size_t panel = Frame<T>::panel;
    for (std::size_t i = 0; i < dp; i += panel)
      for (std::size_t v = 0; v < count; v += tile)
        combine_panel<T, tile>(&rotated_[v * dp + i], dp, &job_.frame->rotation[i * d], &scaled_[v * dp], dp, d);
  }

  // False where a value does not fit T.
  bool write(std::size_t row, const Answer& answer, int x_exponent, int h_exponent) {
    const Frame<T>& frame = *job_.frame;
    // 2^x_exponent, in two factors that are in range where the product is.
    const double scale = std::ldexp(1.0, x_exponent / 2), rest = std::ldexp(1.0, x_exponent - x_exponent / 2);
    const double t = answer.t * scale * rest;
    if (std::abs(t) > std::numeric_limits<T>::max()) return false;
    job_.t[row] = static_cast<T>(t);
    const double most = std::numeric_limits<double>::max();
    job_.h_reached[row] = job_.relative ? std::min(std::ldexp(answer.h, h_exponent), most) : job_.h;
    job_.steps[row] = static_cast<std::int32_t>(answer.steps);
    job_.certificate[row] = answer.certificate;
    std::uint8_t* bits = job_.bits ? job_.bits + row * ((frame.m + 7) / 8) : nullptr;
    if (bits) std::fill_n(bits, (frame.m + 7) / 8, std::uint8_t{0});
    for (std::size_t b = 0; b < frame.blocks.size(); ++b)
      solver_.visit(answer, b, [&](const auto* value) {
        const std::size_t begin = frame.column_start[b], count = frame.blocks[b].m;
        if (bits)
          for (std::size_t i = 0; i < count; ++i)
            bits[(begin + i) / 8] |= static_cast<std::uint8_t>((value[i] >= 0) << (7 - (begin + i) % 8));
        if (job_.x)
          for (std::size_t i = 0; i < count; ++i)
            job_.x[row * frame.m + begin + i] = answer.zero ? T(0) : static_cast<T>(value[i] * scale * rest);
      });
    return true;
  }

  const SpreadJob<T>& job_;
  Solver<T> solver_;
  Aligned<T> scaled_, rotated_;
  int exponent_[chunk] = {};
};

// Chunks of rows are taken in order, so the first failing row is the same for any number of threads.
template <class T>
SpreadFailure solve_batch(const SpreadJob<T>& job) {
  constexpr std::size_t chunk = Worker<T>::chunk;
  std::atomic<bool> stop{false};
  std::mutex mutex;
  SpreadFailure first;
  run_tasks((job.n + chunk - 1) / chunk, job.threads, [&] {
    return [&, worker = std::make_unique<Worker<T>>(job)](std::size_t task) {
      if (stop) return;
      const SpreadFailure failure = worker->run(task * chunk, std::min((task + 1) * chunk, job.n));
      if (failure.status == Status::ok) return;
      stop = true;
      const std::lock_guard<std::mutex> lock(mutex);
      if (first.status == Status::ok || failure.row < first.row) first = failure;
    };
  });
  return first;
}

}  // namespace antisparse::ANTISPARSE_ISA
