#include "bind/ids.hpp"

#include <algorithm>
#include <limits>

namespace antisparse::bind {

namespace {

void check_cells(const Vector<std::int64_t>& cell_ends) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < cell_ends.shape(0); ++i) {
    require(data_of(cell_ends)[i] >= last, "cell_ends must ascend");
    last = cell_ends.data()[i];
  }
  require(cell_ends.shape(0) > 0 && last <= std::int64_t{1} << 40, "cell_ends: not the blocks of at least one cell");
}

template <class T>
nb::ndarray<nb::numpy, T> given(const std::vector<T>& values) {
  auto data = array<T>(values.size());
  std::copy(values.begin(), values.end(), data.get());
  return owned(std::move(data), {values.size()});
}

nb::typed<nb::tuple, nb::any, nb::any, nb::any> pack_ids(Vector<std::int64_t> ids, std::int64_t lowest) {
  require(ids.shape(0) % pack_group == 0 && lowest >= 0, "ids: not 32 for each block, or below 0");
  PackedBlocks packed;
  {
    const std::int64_t* data = data_of(ids);
    nb::gil_scoped_release release;
    packed = pack_blocks(data, ids.shape(0) / pack_group, lowest);
  }
  return nb::make_tuple(given(packed.firsts), given(packed.starts), given(packed.words));
}

Pair map_cells(Vector<std::int64_t> ids, Vector<std::int64_t> cell_ends) {
  check_cells(cell_ends);
  const std::size_t cells = cell_ends.shape(0);
  require(cells > 1 && static_cast<std::size_t>(cell_ends.data()[cells - 1]) * pack_group == ids.shape(0),
          "cell_ends: not the blocks of several cells");
  MadeCellMap made;
  {
    const std::int64_t* data = data_of(ids);
    nb::gil_scoped_release release;
    made = make_cell_map(data, cell_ends.data(), cells);
  }
  return nb::make_tuple(given(made.seeds), given(made.words));
}

nb::ndarray<nb::numpy, std::int64_t> ids_at(const BoundIds& ids, Vector<std::int64_t> places) {
  const IdList& list = ids.list();
  const std::size_t count = places.shape(0);
  const std::int64_t* wanted = data_of(places);
  auto found = array<std::int64_t>(count);
  const auto all = static_cast<std::int64_t>(list.blocks * pack_group);
  for (std::size_t i = 0; i < count; ++i) {
    require(wanted[i] >= 0 && wanted[i] < all, "places: out of range");
    found[i] = list.at(static_cast<std::size_t>(wanted[i]));
  }
  return owned(std::move(found), {count});
}

nb::ndarray<nb::numpy, std::int64_t> all_ids(const BoundIds& ids) {
  const IdList& list = ids.list();
  const std::size_t count = list.blocks * pack_group;
  auto found = array<std::int64_t>(count);
  {
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < count; ++i) found[i] = list.at(i);
  }
  return owned(std::move(found), {count});
}

nb::ndarray<nb::numpy, std::int64_t> find(const BoundIds& ids, Vector<std::int64_t> wanted) {
  const std::size_t count = wanted.shape(0);
  auto places = array<std::int64_t>(count);
  {
    const std::int64_t* data = data_of(wanted);
    nb::gil_scoped_release release;
    find_places(ids.list(), data, count, places.get());
  }
  return owned(std::move(places), {count});
}

}  // namespace

BoundIds::BoundIds(Vector<std::int64_t> cell_ends, std::size_t rows, std::int64_t lowest, std::int64_t highest,
                   const Words& firsts, const Wide& wide_firsts, const Words& starts, const Words& words,
                   const Words& seeds, const Words& cells)
    : cell_ends_(cell_ends),
      firsts_(firsts),
      wide_firsts_(wide_firsts),
      starts_(starts),
      words_(words),
      seeds_(seeds),
      cells_(cells) {
  check_cells(cell_ends);
  list_.cells = cell_ends.shape(0);
  list_.cell_ends = cell_ends.data();
  list_.blocks = static_cast<std::size_t>(cell_ends.data()[list_.cells - 1]);
  list_.rows = rows;
  list_.lowest = lowest;
  list_.highest = highest;
  const bool none = rows == 0 && lowest == 0 && highest == -1;
  require(none || (lowest >= 0 && highest < std::numeric_limits<std::int64_t>::max() &&
                   highest - lowest >= static_cast<std::int64_t>(rows) - 1 && rows <= list_.blocks * pack_group),
          "the lowest and the highest id are not those of so many");
  if (!starts) {
    require(!firsts && !wide_firsts && !words && !seeds && !cells, "ids: some of their arrays are missing");
    require(list_.cells == 1 && (none || highest - lowest == static_cast<std::int64_t>(rows) - 1),
            "ids: they do not follow each other in one cell");
    require(list_.blocks == (rows + pack_group - 1) / pack_group, "ids: not as many as the blocks take");
    return;
  }
  require(words && !firsts != !wide_firsts && !seeds == !cells && !seeds == (list_.cells == 1) && rows > 0,
          "ids: some of their arrays are missing, or one too many");
  require(starts->shape(0) == list_.blocks + 1 && (firsts ? firsts->shape(0) : wide_firsts->shape(0)) == list_.blocks,
          "ids: not one of each array for every block");
  list_.starts = data_of(*starts);
  list_.firsts = {data_or_null(firsts), data_or_null(wide_firsts)};
  list_.words = data_of(*words);
  list_.word_count = words->shape(0);
  if (!seeds) return;
  CellMap& map = list_.map;
  map.seeds = data_of(*seeds);
  map.shards = seeds->shape(0);
  map.words = data_of(*cells);
  map.width = width_of(list_.cells - 1);
  const std::size_t groups = cells->shape(0) / map.width;  // of 32 slots
  require(map.shards > 0 && groups > 0 && groups <= std::size_t{1} << 40 && cells->shape(0) % map.width == 0 &&
              groups % (3 * map.shards) == 0,
          "ids: the slots of their cells do not fit the shards");
  map.range = groups / (3 * map.shards) * pack_group;
  require(map.range <= std::size_t{1} << 32 && map.shards <= std::size_t{1} << 32, "ids: too many slots of a shard");
}

void bind_ids(nb::module_& m) {
  using Words = BoundIds::Words;
  m.def(
      "pack_ids", &pack_ids, "ids"_a.noconvert(), "lowest"_a,
      "Ids by place, -1 for none, in blocks of 32: the first of each block, less the lowest, where its bits start, and "
      "the bits.");
  m.def("map_cells", &map_cells, "ids"_a.noconvert(), "cell_ends"_a.noconvert(),
        "The cell of each id, as seeds of shards and packed slots.");
  nb::class_<BoundIds>(m, "IdList", "The ids of a segment, in few bits.")
      .def(nb::init<Vector<std::int64_t>, std::size_t, std::int64_t, std::int64_t, const Words&, const BoundIds::Wide&,
                    const Words&, const Words&, const Words&, const Words&>(),
           "cell_ends"_a.noconvert(), "rows"_a, "lowest"_a, "highest"_a, nb::kw_only(),
           "firsts"_a.noconvert().none() = nb::none(), "wide_firsts"_a.noconvert().none() = nb::none(),
           "starts"_a.noconvert().none() = nb::none(), "words"_a.noconvert().none() = nb::none(),
           "seeds"_a.noconvert().none() = nb::none(), "cells"_a.noconvert().none() = nb::none())
      .def("at", &ids_at, "places"_a.noconvert(), "The id at each of some places, -1 for none.")
      .def("all", &all_ids, "The id at each place, -1 for none.")
      .def("find", &find, "ids"_a.noconvert(), "The place of each of some ids, -1 where it is not there.");
}

}  // namespace antisparse::bind
