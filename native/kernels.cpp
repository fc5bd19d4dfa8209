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

bool always() { return true; }

// Best first; the last is what every CPU runs.
struct Choice {
  const Kernels* kernels;
  bool (*cpu_has)();
};
const Choice choices[] = {
#ifdef ANTISPARSE_BUILD_AVX2
    {&avx2_kernels, cpu_has_avx2},
#endif
#ifdef ANTISPARSE_BUILD_NEON
    {&neon_kernels, always},
#endif
    {&portable_kernels, always},
};

std::atomic<const Kernels*> current{&portable_kernels};

}  // namespace

const Kernels& kernels() { return *current.load(); }

void choose_kernels() {
  const std::vector<std::string> names = isas();
  const char* const wanted = std::getenv("ANTISPARSE_ISA");
  if (use_isa(wanted ? wanted : names[0].c_str())) return;
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : " or ") + name;
  throw std::invalid_argument(std::string("ANTISPARSE_ISA=") + wanted +
                              ": this machine has no such instruction set; use " + known + ", or unset it");
}

std::vector<std::string> isas() {
  std::vector<std::string> names;
  for (const Choice& choice : choices)
    if (choice.cpu_has()) names.push_back(choice.kernels->isa);
  return names;
}

bool use_isa(const char* name) {
  for (const Choice& choice : choices)
    if (std::strcmp(name, choice.kernels->isa) == 0 && choice.cpu_has()) {
      current = choice.kernels;
      return true;
    }
  return false;
}

}  // namespace antisparse
