#include "kernels.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

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

const Kernels* find(const char* name) {
  if (std::strcmp(name, portable_kernels.isa) == 0) return &portable_kernels;
#ifdef ANTISPARSE_BUILD_AVX2
  if (std::strcmp(name, avx2_kernels.isa) == 0 && cpu_has_avx2()) return &avx2_kernels;
#endif
  return nullptr;
}

const Kernels* at_load() {
  if (const char* name = std::getenv("ANTISPARSE_ISA"))
    if (const Kernels* chosen = find(name)) return chosen;
  const Kernels* best = find("avx2");
  return best ? best : &portable_kernels;
}

std::atomic<const Kernels*>& current() {
  static std::atomic<const Kernels*> chosen{at_load()};
  return chosen;
}

}  // namespace

const Kernels& kernels() { return *current().load(); }

bool use_isa(const char* name) {
  const Kernels* chosen = find(name);
  if (chosen) current() = chosen;
  return chosen != nullptr;
}

}  // namespace antisparse
