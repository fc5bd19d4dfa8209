// The quantised pass of the scan: which of 32 codes at a time may still be among the best.
//
// Table entries are divided by a step and rounded down, so that their sum never exceeds D / step. Narrow sums saturate
// at 255, and the step is set so that the bound lands just below: two look-ups and two additions for a byte of 32
// codes. Wide sums have 16 bits, for long codes and for bounds that narrow ones cannot tell apart; those of four
// nibbles may saturate at 255. Each instruction set has a file of its own, with the same functions:
//
//   quantise                   entries as bytes
//   split, fine_sums           entries in two halves, and 16-bit sums of them (fine.hpp)
//   prune_narrow, prune_wide   masks of the codes of some blocks that may pass
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including scan/prune.hpp"
#endif

#include <algorithm>
#include <cstdint>

#include "scan/scan.hpp"

namespace antisparse::ANTISPARSE_ISA {

// What the pass compares with: a code may pass if its sum is at most `flat`, or, where codes have a column, at most
// slope * x_i + base, x_i being its inverse scale, as float or as a byte.
struct Limit {
  float flat = 0, slope = 0, base = 0;
  bool clamp = true;  // the formula may leave the range of an integer
};

// A query's quantised tables. A linear byte counts in wide sums for byte * factor / 256, rounded down.
struct Quantised {
  const std::uint8_t* entries = nullptr;
  const std::uint16_t* factors = nullptr;
};

}  // namespace antisparse::ANTISPARSE_ISA

#ifdef ANTISPARSE_TARGET_AVX512
#include "scan/prune_avx512.hpp"
#elif defined(ANTISPARSE_TARGET_AVX2)
#include "scan/prune_avx2.hpp"
#elif defined(ANTISPARSE_TARGET_NEON)
#include "scan/prune_neon.hpp"
#else
#include "scan/prune_portable.hpp"
#endif
