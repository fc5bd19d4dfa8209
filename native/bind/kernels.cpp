#include "kernels.hpp"

#include <string>

#include "bind/arrays.hpp"

namespace antisparse::bind {

void bind_kernels(nb::module_& m) {
  m.def("isa", [] { return std::string(kernels().isa); }, "The instruction set in use.");
  m.def("isas", [] { return isas(); }, "The instruction sets that this machine has, best first.");
  m.def(
      "use_isa",
      [](const std::string& name) {
        if (!use_isa(name.c_str())) throw std::invalid_argument("no such instruction set on this machine: " + name);
      },
      "name"_a, "Switch the instruction set in use (for tests).");
}

}  // namespace antisparse::bind
