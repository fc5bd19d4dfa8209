// The list of ids as it is bound, for the scan to read.
#pragma once

#include "bind/arrays.hpp"
#include "ids/id_list.hpp"

namespace antisparse::bind {

// The ids of a segment. Keeps the arrays it was given alive.
class BoundIds {
 public:
  using Words = std::optional<Vector<std::uint32_t>>;
  using Wide = std::optional<Vector<std::uint64_t>>;

  BoundIds(Vector<std::int64_t> cell_ends, std::size_t rows, std::int64_t lowest, std::int64_t highest,
           const Words& firsts, const Wide& wide_firsts, const Words& starts, const Words& words, const Words& seeds,
           const Words& cells);

  const IdList& list() const { return list_; }

 private:
  Vector<std::int64_t> cell_ends_;
  Words firsts_;
  Wide wide_firsts_;
  Words starts_, words_, seeds_, cells_;
  IdList list_;
};

}  // namespace antisparse::bind
