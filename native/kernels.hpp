// The kernels of each instruction set, and the choice among them.
#pragma once

#include "form.hpp"
#include "project.hpp"
#include "refine.hpp"
#include "scan.hpp"
#include "spread.hpp"
#include "words.hpp"

namespace antisparse {

struct Kernels {
  const char* isa;
  SpreadSolve<float> spread_float;
  SpreadSolve<double> spread_double;
  Scan scan;
  Project project;
  MakeForms make_forms;
  RoundRows round_rows;
  Refine refine;
  FindWords find_words;
};

extern const Kernels portable_kernels;
#ifdef ANTISPARSE_BUILD_AVX2
extern const Kernels avx2_kernels;
#endif

// The set in use.
const Kernels& kernels();

// At load: the best set this CPU has, or the one named by the environment variable ANTISPARSE_ISA. Throws where that
// names none this machine has.
void choose_kernels();

// Changes the set in use, for tests; returns false where the name is unknown or the CPU lacks it.
bool use_isa(const char* name);

}  // namespace antisparse
