// Sixteen<int16_t> for any CPU: see sixteen.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace antisparse::ANTISPARSE_ISA {

#ifdef __GNUC__

// Two 16-byte vectors of the compiler's own, as in simd.hpp.
template <>
struct Sixteen<std::int16_t> {
  static constexpr std::size_t size = 16;
  typedef std::int16_t Lanes __attribute__((vector_size(16)));
  Lanes v[2];
  static Sixteen load(const std::int16_t* p) {
    const Lanes* halves = reinterpret_cast<const Lanes*>(p);
    return {{halves[0], halves[1]}};
  }
  static Sixteen all(int x) {
    const Lanes lanes = static_cast<std::int16_t>(x) - Lanes{};
    return {{lanes, lanes}};
  }
  void store(std::int16_t* p) const {
    Lanes* halves = reinterpret_cast<Lanes*>(p);
    halves[0] = v[0];
    halves[1] = v[1];
  }
  std::int16_t operator[](std::size_t i) const { return v[i / 8][i % 8]; }
  friend Sixteen operator+(Sixteen a, Sixteen b) { return {{a.v[0] + b.v[0], a.v[1] + b.v[1]}}; }
  friend Sixteen operator-(Sixteen a, Sixteen b) { return {{less(a.v[0], b.v[0]), less(a.v[1], b.v[1])}}; }
  friend Sixteen operator<(Sixteen a, Sixteen b) { return {{a.v[0] < b.v[0], a.v[1] < b.v[1]}}; }
  // Where the mask is set yes, elsewhere no.
  friend Sixteen select(Sixteen mask, Sixteen yes, Sixteen no) {
    return {{choose(mask.v[0], yes.v[0], no.v[0]), choose(mask.v[1], yes.v[1], no.v[1])}};
  }

 private:
  static Lanes choose(Lanes mask, Lanes yes, Lanes no) { return (mask & yes) | (~mask & no); }
  static Lanes less(Lanes a, Lanes b) {
    typedef std::uint16_t Bits __attribute__((vector_size(16)));
    const Lanes difference = (Lanes)((Bits)a - (Bits)b), beyond = ((a ^ b) & (a ^ difference)) >> 15;
    return choose(beyond, (a >> 15) ^ INT16_MAX, difference);
  }
};

#else

// Loops of fixed length, for compilers without vector types.
template <>
struct Sixteen<std::int16_t> {
  static constexpr std::size_t size = 16;
  std::int16_t v[size];
  template <class F>
  static Sixteen each(F f) {
    Sixteen r;
    for (std::size_t i = 0; i < size; ++i) r.v[i] = static_cast<std::int16_t>(f(i));
    return r;
  }
  static Sixteen load(const std::int16_t* p) {
    return each([&](std::size_t i) { return p[i]; });
  }
  static Sixteen all(int x) {
    return each([&](std::size_t) { return x; });
  }
  void store(std::int16_t* p) const { std::copy_n(v, size, p); }
  std::int16_t operator[](std::size_t i) const { return v[i]; }
  friend Sixteen operator+(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return a.v[i] + b.v[i]; });
  }
  friend Sixteen operator-(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return std::clamp<int>(a.v[i] - b.v[i], INT16_MIN, INT16_MAX); });
  }
  friend Sixteen operator<(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return a.v[i] < b.v[i] ? -1 : 0; });
  }
  friend Sixteen select(Sixteen mask, Sixteen yes, Sixteen no) {
    return each([&](std::size_t i) { return mask.v[i] ? yes.v[i] : no.v[i]; });
  }
};

#endif

inline Sixteen<std::int16_t> max(Sixteen<std::int16_t> a, Sixteen<std::int16_t> b) { return select(a < b, b, a); }

template <>
class LeastSixteen<std::int16_t> {
 public:
  using Integers = Sixteen<std::int16_t>;
  void offer(Integers value, Integers group) {
    const Integers lower = value < low_;
    group_ = select(lower, group, group_);
    low_ = select(lower, value, low_);
  }
  std::int32_t value() const { return key() >> 16; }
  std::size_t where() const { return static_cast<std::size_t>(key() & 0xffff); }

 private:
  std::int32_t key() const {
    std::int32_t least = INT32_MAX;
    for (std::size_t i = 0; i < Integers::size; ++i)
      least = std::min(least, low_[i] * 65536 + group_[i] * 16 + static_cast<int>(i));
    return least;
  }

  Integers low_ = Integers::all(INT16_MAX), group_ = Integers::all(0);
};

}  // namespace antisparse::ANTISPARSE_ISA
