#include "kernels.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#if defined(ANTISPARSE_BUILD_AVX2) && defined(_MSC_VER)
#include <intrin.h>
#endif

namespace antisparse {

namespace {

#ifdef ANTISPARSE_BUILD_AVX2
bool cpu_has_avx2() {
#ifdef _MSC_VER
  int info[4];
  __cpuid(info, 1);
  const bool fma = info[2] & (1 << 12), os_saves = info[2] & (1 << 27);
  __cpuidex(info, 7, 0);
  return fma && os_saves && (info[1] & (1 << 5)) && (_xgetbv(0) & 6) == 6;
#else
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
}
#endif

#ifdef ANTISPARSE_BUILD_AVX512
bool cpu_has_avx512() {
#ifdef _MSC_VER
  int info[4];
  __cpuidex(info, 7, 0);
  constexpr int f = 1 << 16, bw = 1 << 30, vl = 1 << 31, vbmi = 1 << 1;
  return cpu_has_avx2() && (info[1] & f) && (info[1] & bw) && (info[1] & vl) && (info[2] & vbmi) &&
         (_xgetbv(0) & 0xe6) == 0xe6;
#else
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi");
#endif
}

const Kernels* avx512_kernels() {
  static const Kernels all = [] {
    Kernels kernels = avx2_kernels;
    kernels.isa = "avx512";
    kernels.scan = avx512_scan;
    return kernels;
  }();
  return &all;
}
#endif

const Kernels* find(const char* name) {
  if (std::strcmp(name, portable_kernels.isa) == 0) return &portable_kernels;
#ifdef ANTISPARSE_BUILD_AVX2
  if (std::strcmp(name, avx2_kernels.isa) == 0 && cpu_has_avx2()) return &avx2_kernels;
#endif
#ifdef ANTISPARSE_BUILD_AVX512
  if (std::strcmp(name, "avx512") == 0 && cpu_has_avx512()) return avx512_kernels();
#endif
  return nullptr;
}

std::atomic<const Kernels*> current{&portable_kernels};

}  // namespace

const Kernels& kernels() { return *current.load(); }

void choose_kernels() {
  if (const char* name = std::getenv("ANTISPARSE_ISA")) {
    if (use_isa(name)) return;
    throw std::invalid_argument(
        std::string("ANTISPARSE_ISA=") + name +
        ": this machine has no such instruction set; use portable, avx2 or avx512, or unset it");
  }
  if (!use_isa("avx512")) use_isa("avx2");
}

bool use_isa(const char* name) {
  const Kernels* chosen = find(name);
  if (chosen) current = chosen;
  return chosen != nullptr;
}

}  // namespace antisparse
