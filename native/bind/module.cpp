#include "bind/arrays.hpp"
#include "kernels.hpp"

NB_MODULE(_core, m) {
  using namespace antisparse;
  m.doc() = "Native kernels of antisparse. Private: the signatures change without notice.";
  nanobind::set_leak_warnings(false);  // an object still alive when the interpreter ends is no leak
  choose_kernels();
  bind::watch_signals();
  bind::bind_kernels(m);
  bind::bind_spread(m);
  bind::bind_projection(m);
  bind::bind_refine(m);
  bind::bind_codebooks(m);
  bind::bind_tables(m);
  bind::bind_ids(m);
  bind::bind_scan(m);
}
