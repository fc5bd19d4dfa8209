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

template <class T>
std::unique_ptr<T[]> array(std::size_t n) {
  return std::unique_ptr<T[]>(new T[n]);
}

// The data of an optional array, or null.
template <class A>
auto data_or_null(const std::optional<A>& array) -> decltype(array->data()) {
  return array ? array->data() : nullptr;
}

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

using Pair = nb::typed<nb::tuple, nb::any, nb::any>;

// One function a concept, each in a file of its own.
void bind_kernels(nb::module_& m);
void bind_spread(nb::module_& m);
void bind_projection(nb::module_& m);
void bind_refine(nb::module_& m);
void bind_codebooks(nb::module_& m);
void bind_tables(nb::module_& m);
void bind_scan(nb::module_& m);

}  // namespace antisparse::bind
