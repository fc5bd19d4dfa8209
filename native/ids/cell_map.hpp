// The cell of every id of a segment, without the ids: a static function.
//
// An id has three slots, found by hashing; the exclusive or of what they hold is the number of its cell. For an id that
// is not there it is anything: whoever asks looks for the id in that cell. Ids are dealt out by a hash to shards of
// some 32,768, which have slots of their own, the three of an id in three ranges of the same length; a shard has a seed
// by which the slots of its ids can be filled one after the other (Majewski, Wormald, Havas, Czech 1996). That
// takes 1.23 slots an id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ids/packed.hpp"

namespace antisparse {

// SplitMix64: a number mixed with a seed.
inline std::uint64_t mixed(std::uint64_t number, std::uint64_t seed) {
  std::uint64_t z = number + (seed + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// 32 bits of a hash as a number below n, which is no more than 2^32.
inline std::size_t below(std::uint64_t bits, std::size_t n) {
  return static_cast<std::size_t>(((bits & 0xFFFFFFFFu) * n) >> 32);
}

struct Slots {
  std::size_t at[3];
};

// Arrays of the caller's. Whatever they hold, nothing outside them is read.
struct CellMap {
  const std::uint32_t* seeds = nullptr;  // of each shard
  std::size_t shards = 0;
  const std::uint32_t* words = nullptr;  // the slots, packed
  std::size_t width = 0;                 // bits of a slot
  std::size_t range = 0;                 // slots of a third of a shard, a multiple of 32

  std::size_t shard(std::int64_t id) const { return below(mixed(static_cast<std::uint64_t>(id), 0), shards); }

  Slots slots(std::int64_t id, std::size_t shard, std::uint32_t seed) const {
    const std::uint64_t bits = mixed(static_cast<std::uint64_t>(id), std::uint64_t{seed} + 1);
    const std::uint64_t more = mixed(bits, 0);
    const std::size_t first = 3 * range * shard;
    return {
        {first + below(bits, range), first + range + below(bits >> 32, range), first + 2 * range + below(more, range)}};
  }

  std::uint64_t slot(std::size_t i) const { return packed_at(words + i / pack_group * width, width, i % pack_group); }

  std::uint64_t cell(const Slots& slots) const { return slot(slots.at[0]) ^ slot(slots.at[1]) ^ slot(slots.at[2]); }
};

struct MadeCellMap {
  std::vector<std::uint32_t> seeds, words;
};

// The map of ids by place, -1 where there is none, to cells, of at least two. `cell_ends` are in blocks of 32 places.
// Throws std::invalid_argument where an id stands twice.
MadeCellMap make_cell_map(const std::int64_t* ids, const std::int64_t* cell_ends, std::size_t cells);

}  // namespace antisparse
