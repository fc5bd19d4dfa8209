// The ids of a segment, by place: read, and found.
//
// Codes stand in blocks of 32 places, in cells of whole blocks. Within a cell ids ascend with the place, and what is
// left of its last block has none. Of a block are kept its first id, less the lowest of the segment, and for every
// place i how much its id exceeds first + i, packed in as few bits as the largest takes; the number of all ones is a
// place without an id, and no bits at all are 32 ids one after the other. Where all ids of one cell follow each other,
// nothing is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ids/cell_map.hpp"
#include "ids/packed.hpp"

namespace antisparse {

// Numbers that are kept in 32 bits, or in 64.
struct Offsets {
  const std::uint32_t* narrow = nullptr;
  const std::uint64_t* wide = nullptr;
  std::uint64_t operator[](std::size_t i) const { return narrow ? narrow[i] : wide[i]; }
};

// Arrays of the caller's. Whatever they hold, nothing outside them is read: what is not sound is a place without an id.
struct IdList {
  std::size_t rows = 0;                     // ids in all
  std::int64_t lowest = 0, highest = -1;    // 0 <= lowest <= highest < 2^63 - 1, where there are any
  std::size_t blocks = 0;                   // of 32 places
  const std::int64_t* cell_ends = nullptr;  // the block after the last of each cell, ascending; the last is `blocks`
  std::size_t cells = 1;

  const std::uint32_t* starts = nullptr;  // the first word of every block, and the end; null: lowest + place
  Offsets firsts;                         // the first id of every block, less the lowest
  const std::uint32_t* words = nullptr;
  std::size_t word_count = 0;
  CellMap map;  // where there are several cells

  // The id at a place, -1 where there is none.
  std::int64_t at(std::size_t place) const {
    if (!starts) return place < rows ? lowest + static_cast<std::int64_t>(place) : -1;
    return Block(*this, place / pack_group).at(place % pack_group);
  }

  // The places of a block that have an id, as bits.
  std::uint32_t held(std::size_t block) const {
    std::size_t count = 0;  // the others come last
    if (!starts) {
      count = rows - (block * pack_group < rows ? block * pack_group : rows);
    } else {
      const Block ids(*this, block);
      if (ids.at(pack_group - 1) >= 0) return ~std::uint32_t{0};
      for (std::size_t step = pack_group / 2; step > 0; step /= 2)
        if (ids.at(count + step - 1) >= 0) count += step;
    }
    return count >= pack_group ? ~std::uint32_t{0} : (std::uint32_t{1} << count) - 1;
  }

  // Where the bytes of a place's id are, or near it, to be asked for early.
  const void* near(std::size_t place) const {
    if (!starts) return nullptr;
    const std::size_t block = place / pack_group, start = starts[block], end = starts[block + 1];
    const std::size_t word = start + (end - start) * (place % pack_group) / pack_group;
    return word < word_count ? words + word : words;
  }

  // One block.
  class Block {
   public:
    Block(const IdList& list, std::size_t block)
        : lowest_(list.lowest), span_(static_cast<std::uint64_t>(list.highest - list.lowest)) {
      const std::size_t start = list.starts[block], end = list.starts[block + 1];
      first_ = list.firsts[block];
      sound_ = start <= end && end <= list.word_count && end - start <= most_width && first_ <= span_;
      words_ = list.words + (sound_ ? start : 0);
      width_ = sound_ ? end - start : 0;
    }

    std::int64_t at(std::size_t i) const {
      if (!sound_) return -1;
      const std::uint64_t room = span_ - first_, more = width_ ? packed_at(words_, width_, i) : 0;
      if ((width_ && more == most_of(width_)) || more > room || i > room - more) return -1;
      return lowest_ + static_cast<std::int64_t>(first_ + more + i);
    }

   private:
    std::int64_t lowest_;
    std::uint64_t span_, first_ = 0;
    const std::uint32_t* words_ = nullptr;
    std::size_t width_ = 0;
    bool sound_ = false;
  };
};

struct PackedBlocks {
  std::vector<std::uint32_t> starts, words;
  std::vector<std::uint64_t> firsts;
};

// Blocks of ids by place, -1 where there is none, of which `lowest` is the least. Throws std::invalid_argument where
// those of a block do not ascend, or places without an id do not come last.
PackedBlocks pack_blocks(const std::int64_t* ids, std::size_t blocks, std::int64_t lowest);

// The place of each of some ids, -1 where it is not there.
void find_places(const IdList& list, const std::int64_t* ids, std::size_t count, std::int64_t* places);

}  // namespace antisparse
