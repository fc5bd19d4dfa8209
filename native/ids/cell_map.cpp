#include "ids/cell_map.hpp"

#include <algorithm>
#include <stdexcept>

#include "machine/watch.hpp"

namespace antisparse {

namespace {

constexpr std::uint32_t no_seed = 0xFFFFFFFF;

struct Entry {
  std::int64_t id;
  std::uint32_t cell;
};

// One shard: finds a seed by which every id in turn is the last to need one of its slots.
class Shard {
 public:
  explicit Shard(const CellMap& map) : map_(map), several_(3 * map.range), ids_(3 * map.range), value_(3 * map.range) {}

  // The seed, or `no_seed` if none of a hundred does; afterwards `value` says what the slots hold.
  std::uint32_t fill(const Entry* entries, std::size_t count) {
    constexpr std::uint32_t most_seeds = 100;
    for (std::uint32_t seed = 0; seed < most_seeds; ++seed) {
      tick(64 * count);
      if (!peel(entries, count, seed)) continue;
      std::fill(value_.begin(), value_.end(), 0);
      for (std::size_t i = order_.size(); i-- > 0;) {
        const Entry& entry = entries[order_[i].entry];
        const Slots slots = map_.slots(entry.id, 0, seed);
        value_[order_[i].slot] = entry.cell ^ value_[slots.at[0]] ^ value_[slots.at[1]] ^ value_[slots.at[2]];
      }
      return seed;
    }
    return no_seed;
  }

  const std::vector<std::uint32_t>& value() const { return value_; }

 private:
  struct Peeled {
    std::uint32_t entry;
    std::size_t slot;  // which no id that was left needed
  };

  bool peel(const Entry* entries, std::size_t count, std::uint32_t seed) {
    std::fill(several_.begin(), several_.end(), 0);
    std::fill(ids_.begin(), ids_.end(), 0);
    for (std::size_t i = 0; i < count; ++i)
      for (const std::size_t slot : map_.slots(entries[i].id, 0, seed).at) {
        ++several_[slot];
        ids_[slot] ^= static_cast<std::uint32_t>(i);
      }
    order_.clear();
    alone_.clear();
    for (std::size_t slot = 0; slot < several_.size(); ++slot)
      if (several_[slot] == 1) alone_.push_back(slot);
    while (!alone_.empty()) {
      const std::size_t slot = alone_.back();
      alone_.pop_back();
      if (several_[slot] != 1) continue;
      const std::uint32_t entry = ids_[slot];
      order_.push_back({entry, slot});
      for (const std::size_t other : map_.slots(entries[entry].id, 0, seed).at) {
        ids_[other] ^= entry;
        if (--several_[other] == 1) alone_.push_back(other);
      }
    }
    return order_.size() == count;
  }

  const CellMap& map_;
  std::vector<std::uint32_t> several_, ids_;  // by slot: how many ids that are left need it, and which, as one number
  std::vector<std::uint32_t> value_;
  std::vector<Peeled> order_;
  std::vector<std::size_t> alone_;
};

// False where the range must be another.
bool fill_shards(const CellMap& map, const std::vector<Entry>& entries, const std::vector<std::size_t>& ends,
                 MadeCellMap& made) {
  Shard shard(map);
  std::uint32_t* words = made.words.data();
  for (std::size_t s = 0; s < map.shards; ++s) {
    made.seeds[s] = shard.fill(entries.data() + ends[s], ends[s + 1] - ends[s]);
    if (made.seeds[s] == no_seed) return false;
    for (std::size_t i = 0; i < shard.value().size(); i += pack_group, words += map.width)
      for (std::size_t j = 0; j < pack_group; ++j) pack_at(words, map.width, j, shard.value()[i + j]);
  }
  return true;
}

}  // namespace

MadeCellMap make_cell_map(const std::int64_t* ids, const std::int64_t* cell_ends, std::size_t cells) {
  constexpr std::size_t shard_ids = 32768, block = pack_group;
  const auto for_ids = [&](const auto& todo) {
    std::size_t place = 0;
    for (std::size_t cell = 0; cell < cells; ++cell)
      for (; place < static_cast<std::size_t>(cell_ends[cell]) * block; ++place)
        if (ids[place] >= 0) todo(ids[place], cell);
  };
  std::size_t count = 0;
  for_ids([&](std::int64_t, std::size_t) { ++count; });
  CellMap map;
  map.shards = std::max<std::size_t>((count + shard_ids - 1) / shard_ids, 1);
  std::vector<std::size_t> ends(map.shards + 1);
  for_ids([&](std::int64_t id, std::size_t) { ++ends[map.shard(id) + 1]; });
  const std::size_t most = *std::max_element(ends.begin(), ends.end());
  for (std::size_t s = 0; s < map.shards; ++s) ends[s + 1] += ends[s];
  std::vector<Entry> entries(count);
  std::vector<std::size_t> next(ends.begin(), ends.end() - 1);
  for_ids([&](std::int64_t id, std::size_t cell) {
    entries[next[map.shard(id)]++] = {id, static_cast<std::uint32_t>(cell)};
  });

  map.width = width_of(cells - 1);
  // Where no seed does, which takes ids that were chosen for it, other slots do: of a range that is a little longer.
  constexpr int most_ranges = 10;
  map.range = (most * 41 / 100 / block + 1) * block;
  for (int tried = 0; tried < most_ranges; ++tried, map.range += (map.range / 20 / block + 1) * block) {
    MadeCellMap made{std::vector<std::uint32_t>(map.shards),
                     std::vector<std::uint32_t>(3 * map.range * map.shards / block * map.width)};
    if (fill_shards(map, entries, ends, made)) return made;
  }
  throw std::invalid_argument("ids: one stands twice");
}

}  // namespace antisparse
