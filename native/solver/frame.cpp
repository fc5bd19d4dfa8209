#include "solver/frame.hpp"

#include <algorithm>

#include "machine/watch.hpp"

namespace antisparse {

namespace {
// Above this the Gram matrix is not kept: its columns are recomputed from A when they are needed.
constexpr std::size_t gram_limit_bytes = std::size_t{64} << 20;
}  // namespace

template <class T>
Block<T>::Block(const double* a, std::size_t d_, std::size_t m_)
    : d(d_), m(m_), dp(padded<T>(d_)), mp(padded<T>(m_)), rank(std::min(d_, m_)), rows(d_ * mp), columns(m_ * dp) {
  for (std::size_t i = 0; i < d; ++i, tick(4 * m))
    for (std::size_t j = 0; j < m; ++j) {
      rows[i * mp + j] = static_cast<T>(a[i * m + j]);
      columns[j * dp + i] = static_cast<T>(a[i * m + j]);
    }
  if (m * mp * sizeof(T) > gram_limit_bytes) return;
  gram = Aligned<T>(m * mp);
  // Summed in double, so that the float Gram matrix is the rounding of the true one.
  std::vector<double> sum(m);
  for (std::size_t j = 0; j < m; ++j) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::size_t i = 0; i < d; ++i) {
      const double aij = a[i * m + j];
      for (std::size_t l = 0; l < m; ++l) sum[l] += aij * a[i * m + l];
    }
    tick(d * m);
    for (std::size_t l = 0; l < m; ++l) gram[j * mp + l] = static_cast<T>(sum[l]);
  }
}

template <class T>
void Frame<T>::add_block(const double* a, std::size_t block_d, std::size_t block_m) {
  row_start.push_back(d);
  column_start.push_back(m);
  blocks.emplace_back(a, block_d, block_m);
  d += block_d;
  m += block_m;
  dp = padded<T>(d);
}

template <class T>
void Frame<T>::set_rotation(const double* rotation_rows) {
  rotation = Aligned<T>(d * dp);
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < d; ++j)
      rotation[(j / panel * d + i) * panel + j % panel] = static_cast<T>(rotation_rows[i * d + j]);
}

template struct Block<float>;
template struct Block<double>;
template struct Frame<float>;
template struct Frame<double>;

}  // namespace antisparse
