// What the bindings share: the array types they take and give. Bindings bind: they check types and shapes, and leave
// everything else to the files they call.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace antisparse::bind {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, std::size_t dimensions>
using Array = nb::ndarray<const T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = Array<T, 1>;
template <class T>
using Matrix = Array<T, 2>;
// Arrays that are written to.
template <class T, std::size_t dimensions>
using Output = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// An array of NumPy's that owns its memory.
template <class T>
nb::ndarray<nb::numpy, T> owned(std::unique_ptr<T[]> data, std::initializer_list<std::size_t> shape) {
  T* raw = data.release();
  return nb::ndarray<nb::numpy, T>(raw, shape, nb::capsule(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); }));
}

// Asks for huge pages where memory is large, as NumPy does: the first touch of ordinary ones can cost more than all
// that is done with them.
inline void want_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  constexpr std::uintptr_t page = 4096, large = std::uintptr_t{4} << 20;
  if (bytes < large) return;
  const auto start = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
  madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);  // a wish: it may fail
#endif
}

// Memory for an output, not yet written.
template <class T>
std::unique_ptr<T[]> array(std::size_t n) {
  std::unique_ptr<T[]> memory(new T[n]);
  want_huge_pages(memory.get(), n * sizeof(T));
  return memory;
}

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// The data of an array, which stand where their type belongs: NumPy makes arrays at odd addresses too.
template <class A>
auto data_of(const A& array) -> decltype(array.data()) {
  require(reinterpret_cast<std::uintptr_t>(array.data()) % alignof(decltype(*array.data())) == 0,
          "an array is not aligned");
  return array.data();
}

// The data of an optional array, or null.
template <class A>
auto data_or_null(const std::optional<A>& array) -> decltype(array->data()) {
  return array ? data_of(*array) : nullptr;
}

using Pair = nb::typed<nb::tuple, nb::any, nb::any>;

// Long calls handle signals from here on.
void watch_signals();

// One function a concept, each in a file of its own.
void bind_kernels(nb::module_& m);
void bind_spread(nb::module_& m);
void bind_projection(nb::module_& m);
void bind_refine(nb::module_& m);
void bind_codebooks(nb::module_& m);
void bind_tables(nb::module_& m);
void bind_ids(nb::module_& m);
void bind_scan(nb::module_& m);

}  // namespace antisparse::bind
