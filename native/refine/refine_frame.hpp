// G by rows, padded to whole vectors, with the diagonal blocks it is made of.
#pragma once

#include <algorithm>
#include <vector>

#include "machine/aligned.hpp"
#include "machine/simd.hpp"
#include "machine/watch.hpp"
#include "refine/refine.hpp"

namespace antisparse::ANTISPARSE_ISA {

class RefineFrame {
 public:
  explicit RefineFrame(const RefineJob& job)
      : m(job.m), stride(padded<float>(job.m)), gram_(job.m * stride), diagonal_(stride), first_(job.m), end_(job.m) {
    std::size_t first = 0;
    for (std::size_t k = 0; k < job.blocks; ++k) {
      const std::size_t end = static_cast<std::size_t>(job.ends[k]);
      for (std::size_t i = first; i < end; ++i) {
        first_[i] = first;
        end_[i] = end;
        std::copy_n(job.gram + i * m + first, end - first, &gram_[i * stride + first]);
        diagonal_[i] = job.gram[i * m + i];
        tick(stride);
      }
      first = end;
    }
  }

  const float* row(std::size_t i) const { return &gram_[i * stride]; }
  float diagonal(std::size_t i) const { return diagonal_[i]; }
  const float* diagonals() const { return diagonal_.data(); }
  std::size_t first(std::size_t i) const { return first_[i]; }  // the block of row i
  std::size_t end(std::size_t i) const { return end_[i]; }

  const std::size_t m, stride;

 private:
  Aligned<float> gram_, diagonal_;
  std::vector<std::size_t> first_, end_;
};

}  // namespace antisparse::ANTISPARSE_ISA
