// Weights rounded to integers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>

#include "machine/watch.hpp"

namespace antisparse::ANTISPARSE_ISA {

// 1.5 * 2^52: what is added to it is rounded to an integer, half to even.
constexpr double to_integer = 6755399441055744.0;

// Integers below 2^24 times a power of two, which is returned: sums of integers are exact in any order. `at_least`,
// too, is below 2^23 of that unit. NaN where a value is not finite.
inline double round_row(const double* values, std::size_t count, double at_least, std::int32_t* out) {
  constexpr std::size_t lanes = 8;
  double largest[lanes] = {at_least}, zeros[lanes] = {};  // NaN where there is a value that is not finite
  const auto meet = [&](std::size_t lane, double value) {
    const double size = std::abs(value);
    largest[lane] = size > largest[lane] ? size : largest[lane];
    zeros[lane] += 0 * value;
  };
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) meet(lane, values[at + lane]);
  for (; at < count; ++at) meet(0, values[at]);
  const double most = *std::max_element(largest, largest + lanes);
  if (std::accumulate(zeros, zeros + lanes, 0.0) != 0) return std::numeric_limits<double>::quiet_NaN();
  int exponent = 0;
  std::frexp(most, &exponent);
  exponent = most > 0 ? std::max(exponent - 23, -1022) : 0;
  const double inverse = std::ldexp(1.0, -exponent);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::int32_t>((values[i] * inverse + to_integer) - to_integer);
  return std::ldexp(1.0, exponent);
}

inline void round_rows(const double* values, std::size_t n, std::size_t count, double at_least, std::int32_t* rounded,
                       double* units) {
  for (std::size_t i = 0; i < n; ++i, tick(count))
    units[i] = round_row(values + i * count, count, at_least, rounded + i * count);
}

}  // namespace antisparse::ANTISPARSE_ISA
