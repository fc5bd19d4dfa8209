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
  constexpr int f = 1 << 16, bw = 1 << 30, vl = 1 << 31, vbmi = 1 << 1, vnni = 1 << 11;
  return cpu_has_avx2() && (info[1] & f) && (info[1] & bw) && (info[1] & vl) && (info[2] & vbmi) && (info[2] & vnni) &&
         (_xgetbv(0) & 0xe6) == 0xe6;
#else
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512vnni");
#endif
}

const Kernels with_avx512 = [] {
  Kernels kernels = avx2_kernels;
  kernels.isa = "avx512";
  kernels.scan = avx512_kernels.scan;
  kernels.project = avx512_kernels.project;
  kernels.project_single = avx512_kernels.project_single;
  kernels.find_codewords = avx512_kernels.find_codewords;
  return kernels;
}();
#endif

bool always() { return true; }

// Best first; the last is what every CPU runs.
struct Choice {
  const Kernels* kernels;
  bool (*cpu_has)();
};
const Choice choices[] = {
#ifdef ANTISPARSE_BUILD_AVX512
    {&with_avx512, cpu_has_avx512},
#endif
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
