// A LAPACK factorisation differs in its last digits from one CPU to the next, and a frame drawn from a seed must not.
// Here every sum has a fixed order (eight running sums, then their total) and no multiply-add is fused.
#include "solver/orthonormal.hpp"

#include <algorithm>
#include <cmath>

#include "machine/watch.hpp"

namespace antisparse {

namespace {

constexpr std::size_t lanes = 8;
constexpr std::size_t panel = 16;  // rows orthogonalised together against the later ones, to stay in cache

double dot(const double* a, const double* b, std::size_t n) {
  tick(2 * n);
  double lane[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) lane[l] += a[i + l] * b[i + l];
  for (std::size_t l = 0; i < n; ++i, ++l) lane[l] += a[i] * b[i];
  double total = 0;
  for (double value : lane) total += value;
  return total;
}

void subtract(double* row, double factor, const double* other, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) row[i] -= factor * other[i];
}

// One pass of modified Gram-Schmidt. False where a row vanishes.
bool pass(double* rows, std::size_t d, std::size_t m) {
  for (std::size_t begin = 0; begin < d; begin += panel) {
    const std::size_t end = std::min(begin + panel, d);
    for (std::size_t i = begin; i < end; ++i) {
      double* row = rows + i * m;
      const double before = std::sqrt(dot(row, row, m));
      for (std::size_t j = begin; j < i; ++j) subtract(row, dot(row, rows + j * m, m), rows + j * m, m);
      const double after = std::sqrt(dot(row, row, m));
      if (!(after > 1e-12 * before)) return false;
      for (std::size_t l = 0; l < m; ++l) row[l] /= after;
    }
    for (std::size_t i = end; i < d; ++i)
      for (std::size_t j = begin; j < end; ++j)
        subtract(rows + i * m, dot(rows + i * m, rows + j * m, m), rows + j * m, m);
  }
  return true;
}

}  // namespace

// The second pass removes what cancellation left in the first.
bool orthonormal_rows(double* rows, std::size_t d, std::size_t m) { return pass(rows, d, m) && pass(rows, d, m); }

}  // namespace antisparse
