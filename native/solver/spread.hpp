// The spread solver's interface: plain data in, plain data out, one entry an instruction set and type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "solver/frame.hpp"

namespace antisparse {

enum class Status : int { ok = 0, step_limit = 1, inaccurate = 2, overflow = 3 };

// n vectors to solve. Of x and bits one may be null.
template <class T>
struct SpreadJob {
  const Frame<T>* frame = nullptr;
  const Frame<double>* double_frame = nullptr;  // the same in double, for vectors that float32 cannot certify
  int frame_exponent = 0;                       // the frame was divided by 2^frame_exponent
  const T* vectors = nullptr;                   // n x d, finite
  std::size_t n = 0;
  double h = 0;
  bool relative = true;  // h is a fraction of ||A^T y||_1
  std::size_t max_steps = 0;
  unsigned threads = 1;

  T* x = nullptr;                // n x m
  std::uint8_t* bits = nullptr;  // n x ceil(m / 8), most significant bit first, 1 where x_i >= 0
  T* t = nullptr;
  double* h_reached = nullptr;
  std::int32_t* steps = nullptr;
  double* certificate = nullptr;
};

// The first row that failed, and why; status ok when none did.
struct SpreadFailure {
  Status status = Status::ok;
  std::size_t row = 0;
  double certificate = 0;
};

template <class T>
using SpreadSolve = SpreadFailure (*)(const SpreadJob<T>&);

}  // namespace antisparse
