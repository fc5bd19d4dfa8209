// a b + c, rounded once, for CPUs without an instruction for it: vectors of 16 bytes of the compiler's own.
//
// After Boldo and Melquiond (2008): the product and its sum with c, each with what rounding takes off of it. The sum of
// these two rests, which come to a unit or two of the last place, is rounded to odd (away from an even last bit where
// it is not exact), so that the last sum rounds as if it were the only one that does.
#pragma once

#include <cmath>
#include <cstdint>

namespace antisparse::ANTISPARSE_ISA {

typedef float Floats __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(16)));
typedef std::int64_t Longs __attribute__((vector_size(16)));

// Rounded, and what rounding took off.
struct Rounded {
  Doubles value, rest;
};

inline Rounded sum_in_full(Doubles a, Doubles b) {
  const Doubles total = a + b, second = total - a;
  return {total, (a - (total - second)) + (b - second)};
}

inline Rounded product_in_full(Doubles a, Doubles b) {
  constexpr double splitter = 134217729;  // 2^27 + 1: cuts a number into two of 26 bits
  const Doubles product = a * b, a_cut = splitter * a, b_cut = splitter * b;
  const Doubles a_high = a_cut - (a_cut - a), b_high = b_cut - (b_cut - b);
  const Doubles a_low = a - a_high, b_low = b - b_high;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

inline Doubles to_odd(Rounded sum) {
  const Longs bits = (Longs)sum.value, inexact = (sum.rest < 0) | (sum.rest > 0), even = (bits & 1) - 1;
  const Longs step = ((bits ^ (Longs)sum.rest) >> 63) | 1;  // away from zero where what is left has the same sign
  return (Doubles)(bits + (step & inexact & even));
}

inline Doubles magnitude(Doubles a) { return (Doubles)((Longs)a & INT64_MAX); }

inline Doubles fused(Doubles a, Doubles b, Doubles c) {
  constexpr double least = 0x1p-960;  // of a product, for what rounding takes off to be in range
  const Rounded product = product_in_full(a, b), sum = sum_in_full(product.value, c);
  const Doubles result = sum.value + to_odd(sum_in_full(sum.rest, product.rest));
  // A sum that left the range of double on its way is not finite.
  const Longs zero = (a == 0) | (b == 0);
  const Longs fits = (zero | (magnitude(product.value) > least)) & (result - result == 0);
  if (!(fits[0] & fits[1])) return Doubles{std::fma(a[0], b[0], c[0]), std::fma(a[1], b[1], c[1])};
  return (Doubles)((zero & (Longs)(product.value + c)) | (~zero & (Longs)result));
}

// The product of two floats is exact in double.
inline Floats fused(Floats a, Floats b, Floats c) {
  const auto half = [&](int i) {
    const Doubles product = Doubles{a[i], a[i + 1]} * Doubles{b[i], b[i + 1]};
    return to_odd(sum_in_full(product, Doubles{c[i], c[i + 1]}));
  };
  const Doubles low = half(0), high = half(2);
  return Floats{static_cast<float>(low[0]), static_cast<float>(low[1]), static_cast<float>(high[0]),
                static_cast<float>(high[1])};
}

}  // namespace antisparse::ANTISPARSE_ISA
