#include "ids/id_list.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "machine/watch.hpp"

namespace antisparse {

PackedBlocks pack_blocks(const std::int64_t* ids, std::size_t blocks, std::int64_t lowest) {
  PackedBlocks packed;
  packed.starts.reserve(blocks + 1);
  packed.firsts.reserve(blocks);
  for (std::size_t b = 0; b < blocks; ++b, ids += pack_group) {
    tick(8 * pack_group);
    std::size_t count = 0;
    while (count < pack_group && ids[count] >= 0) ++count;
    bool sound = count > 0 && ids[0] >= lowest;
    for (std::size_t i = 1; i < pack_group; ++i) sound &= i < count ? ids[i] > ids[i - 1] : ids[i] == -1;
    if (!sound) throw std::invalid_argument("ids: those of a block do not ascend from the lowest on");
    const auto more = [&](std::size_t i) { return static_cast<std::uint64_t>(ids[i] - ids[0]) - i; };
    const std::uint64_t most = more(count - 1);
    const std::size_t width = most == 0 && count == pack_group ? 0 : width_of(most + 1);
    if (packed.words.size() + width > std::numeric_limits<std::uint32_t>::max())
      throw std::invalid_argument("ids: too many for one segment");
    packed.starts.push_back(static_cast<std::uint32_t>(packed.words.size()));
    packed.firsts.push_back(static_cast<std::uint64_t>(ids[0] - lowest));
    packed.words.resize(packed.words.size() + width);
    for (std::size_t i = 0; i < pack_group && width > 0; ++i)
      pack_at(&packed.words[packed.starts.back()], width, i, i < count ? more(i) : most_of(width));
  }
  packed.starts.push_back(static_cast<std::uint32_t>(packed.words.size()));
  return packed;
}

namespace {

inline void ask_early(const void* address) {
#ifdef __GNUC__
  __builtin_prefetch(address);
#endif
}

// The last of some blocks whose first id is not beyond one.
std::size_t block_of(const Offsets& firsts, std::size_t begin, std::size_t end, std::uint64_t offset) {
  std::size_t count = end - begin;
  while (count > 1) {
    const std::size_t half = count / 2;
    begin = firsts[begin + half] <= offset ? begin + half : begin;
    count -= half;
  }
  return begin;
}

std::int64_t place_in_block(const IdList& list, std::size_t block, std::int64_t id) {
  const IdList::Block ids(list, block);
  std::size_t at = 0;  // of the last that is not beyond it
  for (std::size_t step = pack_group / 2; step > 0; step /= 2) {
    const std::int64_t held = ids.at(at + step);
    at = held >= 0 && held <= id ? at + step : at;
  }
  return ids.at(at) == id ? static_cast<std::int64_t>(block * pack_group + at) : -1;
}

// Ids that are looked for together, one step after the other, so that none waits for another's memory.
class Together {
 public:
  static constexpr std::size_t most = 32;

  explicit Together(const IdList& list) : list_(list) {}

  void find(const std::int64_t* ids, std::size_t count, std::int64_t* places) {
    const CellMap& map = list_.map;
    count_ = 0;
    for (std::size_t i = 0; i < count; ++i) {
      places[i] = -1;
      if (ids[i] >= list_.lowest && ids[i] <= list_.highest) number_[count_++] = i;
    }
    if (list_.cells > 1) {
      for (std::size_t j = 0; j < count_; ++j) {
        const std::int64_t id = ids[number_[j]];
        const std::size_t shard = map.shard(id);
        slots_[j] = map.slots(id, shard, map.seeds[shard]);
        for (const std::size_t slot : slots_[j].at)
          ask_early(map.words + slot / pack_group * map.width + slot % pack_group * map.width / 32);
      }
    }
    std::size_t left = 0;
    for (std::size_t j = 0; j < count_; ++j) {
      const std::uint64_t cell = list_.cells > 1 ? map.cell(slots_[j]) : 0;
      if (cell >= list_.cells) continue;
      const auto end = static_cast<std::size_t>(list_.cell_ends[cell]);
      const auto begin = cell ? static_cast<std::size_t>(list_.cell_ends[cell - 1]) : 0;
      if (begin == end) continue;
      const std::int64_t id = ids[number_[j]];
      block_[left] = block_of(list_.firsts, begin, end, static_cast<std::uint64_t>(id - list_.lowest));
      ask_early(list_.starts + block_[left]);
      number_[left++] = number_[j];
    }
    for (std::size_t j = 0; j < left; ++j) {
      ask_early(list_.near(block_[j] * pack_group));
      ask_early(list_.near(block_[j] * pack_group + pack_group - 1));
    }
    for (std::size_t j = 0; j < left; ++j) places[number_[j]] = place_in_block(list_, block_[j], ids[number_[j]]);
  }

 private:
  const IdList& list_;
  std::size_t count_ = 0;
  std::size_t number_[most], block_[most];
  Slots slots_[most];
};

}  // namespace

void find_places(const IdList& list, const std::int64_t* ids, std::size_t count, std::int64_t* places) {
  if (!list.starts || !list.blocks) {
    for (std::size_t i = 0; i < count; ++i)
      places[i] = list.rows && ids[i] >= list.lowest && ids[i] <= list.highest ? ids[i] - list.lowest : -1;
    return;
  }
  Together together(list);
  for (std::size_t i = 0; i < count; i += Together::most) {
    tick(64 * Together::most);
    together.find(ids + i, std::min(Together::most, count - i), places + i);
  }
}

}  // namespace antisparse
