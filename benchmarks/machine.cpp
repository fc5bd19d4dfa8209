// What one core can do at most: look-ups in tables of 16 bytes, and reading memory. Compiled by search.py for the machine
// it runs on.
#include <immintrin.h>

#ifdef __AVX512BW__
using Register = __m512i;
static Register shuffle(Register table, Register places) { return _mm512_shuffle_epi8(table, places); }
static Register either(Register a, Register b) { return _mm512_or_si512(a, b); }
#else
using Register = __m256i;
static Register shuffle(Register table, Register places) { return _mm256_shuffle_epi8(table, places); }
static Register either(Register a, Register b) { return _mm256_or_si256(a, b); }
#endif

// `rounds` times twelve shuffles of registers that wait for nothing; returns the number of bytes looked up.
extern "C" long shuffles(long rounds) {
  Register state[12] = {};
  for (long round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) {
      state[i] = shuffle(state[i], state[i]);
      asm volatile("" : "+v"(state[i]));  // or the compiler would see that nothing is done
    }
  }
  return rounds * 12 * static_cast<long>(sizeof(Register));
}

// Reads an array of bytes, aligned to 64, whose length is a multiple of 512.
extern "C" void read(const char* bytes, long count) {
  constexpr long width = sizeof(Register);
  Register found[8] = {};
  for (long at = 0; at < count; at += 8 * width) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
      found[i] = either(found[i], *reinterpret_cast<const Register*>(bytes + at + i * width));
  }
  for (Register& one : found) asm volatile("" ::"v"(one));
}
