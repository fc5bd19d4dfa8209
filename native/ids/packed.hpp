// Numbers of a few bits each, packed: 32 numbers of w bits take w words of 32 bits, from the lowest bit on, so that
// groups of 32 begin at whole words, and any number is read from a few words.
#pragma once

#include <cstddef>
#include <cstdint>

namespace antisparse {

constexpr std::size_t pack_group = 32;
constexpr std::size_t most_width = 63;  // bits of a number

inline std::uint64_t most_of(std::size_t width) { return (std::uint64_t{1} << width) - 1; }

// Bits that numbers up to this one take.
inline std::size_t width_of(std::uint64_t most) {
  std::size_t width = 0;
  for (; most; most >>= 1) ++width;
  return width;
}

// Number i of those packed with 1 to 63 bits from these words on.
inline std::uint64_t packed_at(const std::uint32_t* words, std::size_t width, std::size_t i) {
  const std::size_t bit = i * width, shift = bit % 32;
  words += bit / 32;
  std::uint64_t value = *words >> shift;
  for (std::size_t read = 32 - shift; read < width; read += 32) value |= std::uint64_t{*++words} << read;
  return value & most_of(width);
}

// The bits of number i, which were zero, set to a value that fits.
inline void pack_at(std::uint32_t* words, std::size_t width, std::size_t i, std::uint64_t value) {
  const std::size_t bit = i * width, shift = bit % 32;
  words += bit / 32;
  *words |= static_cast<std::uint32_t>(value << shift);
  for (std::size_t written = 32 - shift; written < width; written += 32)
    *++words |= static_cast<std::uint32_t>(value >> written);
}

}  // namespace antisparse
