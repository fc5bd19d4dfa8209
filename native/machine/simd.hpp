// Pack<T>: a short vector of 8 floats or 4 doubles. Included by one translation unit per instruction set, inside the
// namespace ANTISPARSE_ISA, so that no inline function compiled for AVX2 is ever linked into the portable code.
//
// Every instruction set gives the same bits: there are as many lanes, they are added up in the same order, and fma
// rounds once, by the CPU or by fused.hpp.
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including machine/simd.hpp"
#endif

#ifdef ANTISPARSE_TARGET_AVX2
#include "machine/pack_avx2.hpp"
#elif defined(ANTISPARSE_TARGET_NEON)
#include "machine/pack_neon.hpp"
#else
#include "machine/pack_portable.hpp"
#endif
