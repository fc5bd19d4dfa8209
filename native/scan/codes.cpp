#include "scan/codes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "machine/watch.hpp"

namespace antisparse {

CodeColumns::CodeColumns(const std::uint8_t* blocks, std::size_t block_count, std::size_t bytes, std::size_t n,
                         const Ids& ids, const std::int64_t* cell_ends, std::size_t cells) {
  constexpr std::size_t most_bytes = std::size_t{1} << 20;  // sums of 2^31 a nibble stay exact in double
  const std::size_t all = block_count * scan_block;
  if (bytes == 0 || bytes > most_bytes) throw std::invalid_argument("blocks: a code has 1 to 2^20 bytes");
  if (n > all || (!ids && all - n >= scan_block)) throw std::invalid_argument("the blocks do not fit n");
  codes_.blocks = blocks;
  codes_.block_count = block_count;
  codes_.bytes = bytes;
  codes_.places = ids ? all : n;
  codes_.ids = ids;
  only_end_ = static_cast<std::int64_t>(block_count);
  codes_.cell_ends = &only_end_;
  if (!cell_ends) return;
  if (!ids || cells == 0) throw std::invalid_argument("cell_ends: cells need ids, and at least one cell");
  std::int64_t last = 0;
  for (std::size_t i = 0; i < cells; ++i) {
    if (cell_ends[i] < last) throw std::invalid_argument("cell_ends must ascend");
    last = cell_ends[i];
  }
  if (last != only_end_) throw std::invalid_argument("cell_ends: the cells do not fit the blocks");
  codes_.cell_ends = cell_ends;
  codes_.cells = cells;
}

void CodeColumns::set_scales(const float* scales) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::size_t all = codes_.block_count * scan_block;
  std::uint32_t held = 0;  // of the block that comes next
  const auto has_code = [&](std::size_t i) {
    if (i % scan_block == 0) held = codes_.ids ? codes_.ids.held(i / scan_block) : ~std::uint32_t{0};
    return (held >> (i % scan_block) & 1) && i < codes_.places;
  };
  inverse_ = Aligned<float>(all);
  codes_.least_inverse = infinity;
  for (std::size_t i = 0; i < all; ++i) {
    if (i % scan_block == 0) tick(4 * scan_block);
    if (!has_code(i)) continue;
    if (!(scales[i] >= 0) || !std::isfinite(scales[i])) throw std::invalid_argument("a scale is out of range");
    const float inverse = 1 / scales[i];
    inverse_[i] = std::isnormal(inverse) ? inverse : std::numeric_limits<float>::quiet_NaN();
    if (inverse_[i] != inverse_[i]) {
      codes_.unlimited = true;
      continue;
    }
    codes_.least_inverse = std::min(codes_.least_inverse, inverse);
    codes_.most_inverse = std::max(codes_.most_inverse, inverse);
  }
  if (codes_.most_inverse == 0) codes_.least_inverse = codes_.most_inverse = 1;
  // Places without a code never count; a number there that is in range keeps sums in range.
  for (std::size_t i = 0; i < all; ++i)
    if (!has_code(i)) inverse_[i] = codes_.most_inverse;
  codes_.scales = scales;
  codes_.inverse = inverse_.data();
}

void CodeColumns::set_inverse_scales(const std::uint8_t* bytes, double low, double step) {
  const auto least = static_cast<float>(low), most = static_cast<float>((low + 255 * step) * (1 + 1e-6));
  if (!(low > 0) || !(step >= 0) || !std::isnormal(least) || !std::isnormal(most))
    throw std::invalid_argument("inverse scales: low must be positive and step not negative, in the range of float32");
  codes_.inverse_bytes = bytes;
  codes_.inverse_low = low;
  codes_.inverse_step = step;
  codes_.least_inverse = least;
  codes_.most_inverse = most;
}

}  // namespace antisparse
