// The scan: chunks of blocks, groups of queries that share them, threads.
#pragma once

#include <cstring>
#include <memory>
#include <numeric>

#include "prune.hpp"
#include "select.hpp"
#include "threads.hpp"

namespace antisparse::ANTISPARSE_ISA {

// Whether eight masks are all zero, as nearly all are.
inline bool none(const std::uint32_t* masks) {
  std::uint64_t pairs[4];
  std::memcpy(pairs, masks, sizeof pairs);
  return (pairs[0] | pairs[1] | pairs[2] | pairs[3]) == 0;
}

inline int set_bits(std::uint32_t mask) {
#ifdef __GNUC__
  return __builtin_popcount(mask);
#else
  int count = 0;
  for (; mask; mask &= mask - 1) ++count;
  return count;
#endif
}

// Memory that is wanted soon.
inline void ask_for(const void* address) {
#ifdef __GNUC__
  __builtin_prefetch(address);
#endif
}

// A query on its way through a range of blocks.
class ScanQuery {
 public:
  explicit ScanQuery(const ScanJob& job)
      : best(job.k), job_(job), exact_(job), fine_(2 * job.bytes), tables_(2 * job.bytes) {}

  void start(std::size_t query) {
    best.clear();
    seen = 0;
    query_ = query;
    cell_ = 0;
    unit_ = job_.unit[query];
    exact_.fill(job_, query);
    built_ = prefer_wide_ = fine_built_ = false;
    if (!job_.cells) return;
    offsets_ = job_.offsets + query * job_.visited();
    least_offset_ = *std::min_element(offsets_, offsets_ + job_.visited());
  }

  // Ready for the next chunk, of the cell (or probe) given: the limit that the best so far set, and tables fit to tell
  // codes apart near it. False where no code of the cell can be among the best.
  bool prepare(std::size_t cell) {
    enter(cell);
    const double score = best.bound();
    open_ = score == infinity_;
    if (open_) return true;
    const double most = most_disagreement(score - least_offset_);
    if (!built_ || (!tables_.wide() && most < 0.85 * built_for_)) build(most);
    limit = {};
    limit.flat = limit.base = 65535;  // everything passes, unless something better is known
    const double bound = score - offset_;
    if (!job_.terms()) {
      // Without cells, codes come in the order of ids, so one that ties with the worst is too late. With them the
      // difference has rounding, and ties count.
      double d = bound - 1;
      if (offsets_) {
        d = (bound + 1e-15 * (std::abs(score) + std::abs(offset_))) / unit_ + 1;
        if (d < 0) return false;
      }
      limit.flat = static_cast<float>(std::min(std::max(d / tables_.step(), 0.0), 65535.0));
    } else {
      const double per = 1 / (unit_ * tables_.step());
      const double bias = std::max(std::abs(job_.least_bias), std::abs(job_.most_bias));
      const double slope = (bound - shared_bias()) * per;
      const double base = static_cast<double>(exact_.total) / 2 / tables_.step();
      const double size = (std::abs(score) + std::abs(offset_) + bias) * per;
      // The limits are formed in float: not where anything could leave its range, and with room for rounding.
      const double largest = std::max({per, size, size * job_.most_reach, std::abs(base)});
      if (largest < 1e30 && (slope == 0 || std::abs(slope) > 1e-30) && per > 1e-30) {
        limit.slope = static_cast<float>(slope);
        limit.offset = static_cast<float>(-per * (job_.reach_bytes ? job_.bias_step : 1.0));
        limit.base = static_cast<float>(base + 1e-6 * (size * job_.most_reach + std::abs(base)) + 1e-3);
        limit.clamp = job_.unreachable || !(size * job_.most_reach + std::abs(base) < 1e9);
      }
    }
    if (!tables_.wide()) limit.flat = std::min(limit.flat, 255.0f);
    return true;
  }

  // The codes that passed, scored exactly: found first, then scored, then offered, so that none waits for another's.
  void collect(std::size_t first_block, std::size_t count, const std::uint32_t* masks) {
    std::size_t missed = 0;
    hits_.clear();
    for (std::size_t b = 0; b < count; ++b) {
      while (b + 8 <= count && none(masks + b)) b += 8;
      if (b == count) break;
      std::uint32_t mask = masks[b];
      const std::size_t start = (first_block + b) * scan_block;
      if (start + scan_block > job_.n) mask &= (std::uint32_t{1} << (job_.n - start)) - 1;
      // All of a block by fine sums cost as much as a few of them one by one.
      const int passed = set_bits(mask);
      if (!open_ && passed > 4 && by_fine()) {
        float values[scan_block];
        least_scores(first_block + b, values);
        mask &= at_most(values, static_cast<float>(best.bound() + rounding_));
        missed += static_cast<std::size_t>(passed - set_bits(mask));
      }
      for (; mask; mask &= mask - 1) {
        const std::size_t i = start + static_cast<std::size_t>(trailing_zeros(mask));
        if (job_.positions) ask_for(job_.positions + i);
        hits_.push_back(i);
      }
      if (hits_.size() >= 256) missed += score_hits();
    }
    missed += score_hits();
    // Passed in vain too often for narrow sums to be worth their speed.
    if (!open_ && !tables_.wide() && count >= 32 && missed * 48 > count * scan_block) {
      prefer_wide_ = true;
      built_ = false;
    }
  }

  // The first codes, where there is no limit yet: gathered with no more than their scores, by fine sums, ...
  void gather(std::size_t cell, std::size_t first_block, std::size_t count) {
    enter(cell);
    gathered_.push_back({cell, first_block, count});
    chosen_.resize(chosen_.size() + count, ~std::uint32_t{0});
    if (!by_fine()) return;
    if (values_.size() < chosen_.size() * scan_block) values_.resize(chosen_.size() * scan_block);
    float* values = &values_[valued_ * scan_block];
    for (std::size_t b = 0; b < count; ++b) least_scores(first_block + b, values + b * scan_block);
    valued_ += count;
    width_ = std::max(width_, rounded_off_);
  }

  // ... and collected: those that may be among the k best of them.
  void collect_gathered() {
    choose_gathered();
    if (job_.positions && !all_are_codes()) {  // then these count for nothing
      for_gathered_blocks([&](std::size_t b, std::size_t block) { leave_out(block, &values_[b * scan_block]); });
      choose_gathered();
    }
    const std::uint32_t* masks = chosen_.data();
    for (const Stretch& stretch : gathered_) {
      enter(stretch.cell);
      collect(stretch.first_block, stretch.count, masks);
      masks += stretch.count;
    }
    gathered_.clear();
    chosen_.clear();
    valued_ = 0;
    width_ = 0;
  }

  std::size_t cell() const { return cell_; }
  bool open() const { return open_; }  // there is no limit yet
  bool wide() const { return tables_.wide(); }
  const std::uint8_t* tables() const { return tables_.data(); }
  const std::uint16_t* factors() const { return tables_.factors(); }

  Best best;
  Limit limit;
  std::size_t seen = 0;  // blocks

 private:
  struct Stretch {
    std::size_t cell, first_block, count;
  };
  static constexpr double infinity_ = std::numeric_limits<double>::infinity();

  void choose_gathered() {
    if (valued_ < chosen_.size()) return;
    const float kth = bound_kth_least(values_.data(), valued_ * scan_block, job_.k, folded_);
    const auto most = static_cast<float>(kth + width_);
    for (std::size_t b = 0; b < valued_; ++b) chosen_[b] = at_most(&values_[b * scan_block], most);
  }

  // Whether there is a code at all places chosen, which are few: there is none where it was deleted or filtered out.
  bool all_are_codes() const {
    if (valued_ < chosen_.size()) return true;
    bool codes = true;
    for_gathered_blocks([&](std::size_t b, std::size_t block) {
      for (std::uint32_t mask = chosen_[b]; mask; mask &= mask - 1)
        codes &= job_.positions[block * scan_block + static_cast<std::size_t>(trailing_zeros(mask))] >= 0;
    });
    return codes;
  }

  template <class Do>
  void for_gathered_blocks(const Do& todo) const {
    std::size_t b = 0;
    for (const Stretch& stretch : gathered_)
      for (std::size_t i = 0; i < stretch.count; ++i) todo(b++, stretch.first_block + i);
  }

  // Places without a code are never chosen.
  void leave_out(std::size_t block, float* values) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::int64_t* positions = job_.positions + block * scan_block;
    for (std::size_t i = 0; i < scan_block; ++i) values[i] = positions[i] < 0 ? infinity : values[i];
  }

  // Scores and offers the codes found; returns how many of them were too far.
  std::size_t score_hits() {
    scores_.resize(hits_.size());
    for (std::size_t h = 0; h < hits_.size(); ++h)
      scores_[h] = exact_score(job_, exact_, unit_, offset_, hits_[h], exact_.disagreement(job_, hits_[h]));
    std::size_t missed = 0;
    for (std::size_t h = 0; h < hits_.size(); ++h) {
      if (!best.admits(scores_[h])) {
        ++missed;
        continue;
      }
      const std::int64_t id = job_.positions ? job_.positions[hits_[h]] : static_cast<std::int64_t>(hits_[h]);
      if (id >= 0) best.offer({scores_[h], id});
    }
    hits_.clear();
    return missed;
  }

  void enter(std::size_t cell) {
    offset_ = offsets_ ? offsets_[cell] : 0;
    if (job_.nibble && cell != cell_) {
      exact_.weigh_number(job_, query_, cell);
      fine_built_ = false;
      if (built_) tables_.build_last(exact_);
    }
    cell_ = cell;
    if (!job_.cells) return;
    const std::size_t number =
        job_.probes ? static_cast<std::size_t>(job_.probes[query_ * job_.probe_count + cell]) : cell;
    last_block_ = static_cast<std::size_t>(job_.cell_ends[number]) - 1;
  }

  // Whether fine sums can be used, whose tables are then ready.
  bool by_fine() {
    if (!FineTables::fit(exact_) || job_.unreachable) return false;
    if (!fine_built_) fine_.build(exact_);
    fine_built_ = true;
    const double unit = job_.terms() || job_.cells ? unit_ : 1, reach = job_.terms() ? job_.least_reach : 1;
    const double bias = job_.terms() ? std::max(std::abs(job_.least_bias), std::abs(job_.most_bias)) : 0;
    const auto total = static_cast<double>(exact_.total);
    const double sums = std::max(std::abs(total), static_cast<double>(exact_.most + exact_.side_total));
    const double largest = std::abs(offset_) + bias + unit * sums / reach;
    slope_ = static_cast<float>(unit * fine_.step());
    base_ = static_cast<float>(job_.terms() ? -unit * total / 2 : offset_);
    rounding_ = 1e-6 * largest;
    rounded_off_ = fine_.slack() * unit * fine_.step() / reach + 2 * rounding_;
    return largest > 1e-30 && largest < 1e30;  // not where float could leave its range
  }

  // For the codes of a block no more than their score, but for rounding; infinity for those that cannot be found.
  void least_scores(std::size_t block, float* out) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::size_t start = block * scan_block;
    std::uint16_t sums[scan_block];
    fine_.sums(job_, block, sums);
    for (std::size_t i = 0; i < scan_block; ++i) out[i] = base_ + slope_ * sums[i];
    if (job_.terms()) add_terms(start, out);
    if (job_.positions && block == last_block_) leave_out(block, out);  // which has padding
    for (std::size_t i = job_.n - start; i < scan_block; ++i) out[i] = infinity;
  }

  // offset + bias + (D - T / 2) unit / reach, from the last without the division.
  void add_terms(std::size_t start, float* out) const {
    const auto offset = static_cast<float>(offset_);
    if (job_.reach_bytes) {
      const auto step = static_cast<float>(job_.reach_step), low = static_cast<float>(job_.reach_low);
      const auto bias_step = static_cast<float>(job_.bias_step), bias_low = static_cast<float>(job_.bias_low);
      for (std::size_t i = start; i < start + scan_block; ++i, ++out)
        *out = offset + (bias_low + bias_step * job_.bias_bytes[i]) + *out / (low + step * job_.reach_bytes[i]);
    } else {
      for (std::size_t i = start; i < start + scan_block; ++i, ++out)
        *out = offset + (job_.bias ? job_.bias[i] : job_.bias0) + *out / job_.reach[i];
    }
  }

  void build(double most) {
    // Each of many narrow entries loses half a step on average: too much, once it comes to a seventh of the bound.
    const bool coarse = most > 254 && exact_.nibbles() > 72;
    tables_.build(exact_, most, prefer_wide_ || coarse);
    built_for_ = most;
    built_ = true;
  }

  // The largest D of a code whose score, less its offset, is at most `bound`.
  double most_disagreement(double bound) const {
    const auto total = static_cast<double>(exact_.total), most = static_cast<double>(exact_.most);
    if (!job_.terms())
      return std::min(job_.cells ? std::max(bound / unit_, 1.0) : bound, most + static_cast<double>(exact_.side_total));
    const double room = (bound - job_.least_bias) / unit_;
    return std::min(std::max(total / 2 + room * (room > 0 ? job_.most_reach : job_.least_reach), 1.0), most);
  }

  // What the limits count from: the part of the bias that all codes have.
  double shared_bias() const { return job_.reach_bytes ? job_.bias_low : job_.bias ? 0.0 : job_.bias0; }

  const ScanJob& job_;
  std::size_t query_ = 0, cell_ = 0;  // the cell whose number the tables weigh
  std::size_t last_block_ = 0;        // of that cell
  double unit_ = 1;
  const double* offsets_ = nullptr;  // by cell, or null
  double least_offset_ = 0, offset_ = 0;
  ExactTables exact_;
  FineTables fine_;
  float slope_ = 0, base_ = 0;             // of least scores in fine sums
  double rounding_ = 0, rounded_off_ = 0;  // of least scores in float; how much less they are than scores
  std::vector<std::size_t> hits_;          // codes that passed, and their scores
  std::vector<double> scores_;
  std::vector<Stretch> gathered_;
  std::vector<std::uint32_t> chosen_;
  std::vector<float> values_, folded_;  // the former of as many blocks as follow
  std::size_t valued_ = 0;
  double width_ = 0;  // the most that was rounded off of those
  Tables tables_;
  double built_for_ = 0;
  bool built_ = false, prefer_wide_ = false, fine_built_ = false, open_ = true;
};

template <int count>
void prune_group(const ScanJob& job, ScanQuery* const* queries, std::size_t first, std::size_t blocks,
                 std::vector<std::uint32_t>& masks) {
  const std::uint8_t* tables[count];
  const std::uint16_t* factors[count];
  Limit limits[count];
  std::uint32_t* out[count];
  for (int q = 0; q < count; ++q) {
    tables[q] = queries[q]->tables();
    factors[q] = queries[q]->factors();
    limits[q] = queries[q]->limit;
    out[q] = masks.data() + q * blocks;
  }
  if (queries[0]->wide())
    prune_wide<count>(job, first, blocks, tables, factors, limits, out);
  else
    prune_narrow<count>(job, first, blocks, tables, limits, out);
  for (int q = 0; q < count; ++q) queries[q]->collect(first, blocks, out[q]);
}

// The blocks [at, at + blocks) for the queries that are ready.
inline void prune_all(const ScanJob& job, const std::vector<ScanQuery*>& ready, std::vector<ScanQuery*>& order,
                      std::size_t at, std::size_t blocks, std::vector<std::uint32_t>& masks) {
  for (ScanQuery* query : ready)
    if (query->open()) {
      query->gather(query->cell(), at, blocks);
      query->collect_gathered();
    }
  for (const bool wide : {false, true}) {
    order.clear();
    for (ScanQuery* query : ready)
      if (!query->open() && query->wide() == wide) order.push_back(query);
    std::size_t i = 0;
    for (; i + 4 <= order.size(); i += 4) prune_group<4>(job, &order[i], at, blocks, masks);
    for (; i + 2 <= order.size(); i += 2) prune_group<2>(job, &order[i], at, blocks, masks);
    for (; i < order.size(); ++i) prune_group<1>(job, &order[i], at, blocks, masks);
  }
}

// Blocks to find a first limit in, by fine sums.
inline std::size_t first_blocks(const ScanJob& job) { return std::clamp<std::size_t>(job.k / 8, 64, 1024); }

// How many blocks stay in cache while all queries pass them.
inline std::size_t longest_chunk(const ScanJob& job) {
  const std::size_t block_bytes = scan_block * (job.bytes + (job.scale ? 8 : job.reach_bytes ? 2 : 0));
  return std::max<std::size_t>(64, (std::size_t{128} << 10) / block_bytes);
}

// All queries over the blocks [first, end). A chunk stays in cache while all of them pass it; the first ones are
// short, since what they find sets the limits for the rest.
inline void scan_blocks(const ScanJob& job, std::vector<std::unique_ptr<ScanQuery>>& queries, std::size_t first,
                        std::size_t end) {
  const std::size_t longest = longest_chunk(job);
  std::vector<std::uint32_t> masks(4 * std::max(longest, first_blocks(job)));
  std::vector<ScanQuery*> ready, order;
  std::size_t length = first_blocks(job), cell = 0, blocks = 0;
  for (std::size_t at = first; at < end; at += blocks, length = std::min(2 * length, longest)) {
    blocks = std::min(length, end - at);
    if (job.cells) {
      while (static_cast<std::size_t>(job.cell_ends[cell]) <= at) ++cell;
      blocks = std::min(blocks, static_cast<std::size_t>(job.cell_ends[cell]) - at);
    }
    ready.clear();
    for (auto& query : queries)
      if (query->prepare(cell)) ready.push_back(query.get());
    prune_all(job, ready, order, at, blocks, masks);
  }
}

// Each query over the cells it probes, cell by cell, so that queries of the same cell pass it together. A chunk is no
// longer than what each of them has seen: what they find there sets the limits for the rest.
inline void scan_cells(const ScanJob& job, std::vector<std::unique_ptr<ScanQuery>>& queries, std::size_t first) {
  const std::size_t longest = longest_chunk(job);
  std::vector<std::uint32_t> masks(4 * std::max(longest, first_blocks(job)));
  std::vector<ScanQuery*> ready, order;
  struct Visit {
    std::uint32_t query, probe;
  };
  // Visits by cell: those of cell c stand in [starts[c], starts[c + 1]).
  std::vector<std::size_t> starts(job.cells + 1, 0);
  const std::int64_t* probes = job.probes + first * job.probe_count;
  const std::size_t count = queries.size() * job.probe_count;
  for (std::size_t i = 0; i < count; ++i) ++starts[static_cast<std::size_t>(probes[i]) + 1];
  for (std::size_t cell = 0; cell < job.cells; ++cell) starts[cell + 1] += starts[cell];
  std::vector<Visit> visits(count);
  std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
  for (std::size_t q = 0; q < queries.size(); ++q)
    for (std::size_t p = 0; p < job.probe_count; ++p)
      visits[next[static_cast<std::size_t>(probes[q * job.probe_count + p])]++] = {static_cast<std::uint32_t>(q),
                                                                                   static_cast<std::uint32_t>(p)};
  for (std::size_t cell = 0; cell < job.cells; ++cell) {
    if (starts[cell] == starts[cell + 1]) continue;
    const auto end = static_cast<std::size_t>(job.cell_ends[cell]);
    std::size_t blocks = 0;
    for (auto at = static_cast<std::size_t>(cell ? job.cell_ends[cell - 1] : 0); at < end; at += blocks) {
      ready.clear();
      std::size_t seen = longest;
      for (std::size_t i = starts[cell]; i < starts[cell + 1]; ++i) {
        ScanQuery* query = queries[visits[i].query].get();
        if (!query->prepare(visits[i].probe)) continue;
        seen = std::min(seen, query->seen);
        ready.push_back(query);
      }
      blocks = std::min(std::max(seen, first_blocks(job)), end - at);
      for (ScanQuery* query : ready) query->seen += blocks;
      prune_all(job, ready, order, at, blocks, masks);
    }
  }
}

// One query over the cells it probes, in their order: the first codes gathered, the others by the limit these set.
class ProbeScan {
 public:
  explicit ProbeScan(const ScanJob& job) : job_(job), query_(job), longest_(longest_chunk(job)), masks_(longest_) {}

  void scan(std::size_t query) {
    number_ = query;
    probe_ = 0;
    query_.start(query);
    enter();
    ScanQuery* const one = &query_;
    while (probe_ < job_.probe_count) {
      if (!query_.prepare(probe_)) {
        pass(end_ - at_);
      } else if (query_.open()) {
        gather();
      } else {
        const std::size_t blocks = std::min(longest_, end_ - at_);
        prune_group<1>(job_, &one, at_, blocks, masks_);
        pass(blocks);
      }
    }
    query_.best.write(job_.scores + query * job_.k, job_.ids + query * job_.k);
  }

 private:
  void gather() {
    for (std::size_t left = first_blocks(job_); left > 0 && probe_ < job_.probe_count;) {
      const std::size_t blocks = std::min(left, end_ - at_);
      query_.gather(probe_, at_, blocks);
      left -= blocks;
      pass(blocks);
    }
    query_.collect_gathered();
  }

  void pass(std::size_t blocks) {
    at_ += blocks;
    if (at_ < end_) return;
    ++probe_;
    enter();
  }

  // The cell of the probe, or, where it is empty, of the next one that is not.
  void enter() {
    for (; probe_ < job_.probe_count; ++probe_) {
      const std::int64_t cell = job_.probes[number_ * job_.probe_count + probe_];
      at_ = static_cast<std::size_t>(cell ? job_.cell_ends[cell - 1] : 0);
      end_ = static_cast<std::size_t>(job_.cell_ends[cell]);
      if (at_ < end_) return;
    }
  }

  const ScanJob& job_;
  ScanQuery query_;
  std::size_t longest_;
  std::vector<std::uint32_t> masks_;
  std::size_t number_ = 0, probe_ = 0, at_ = 0, end_ = 0;
};

// Each query by itself; by their first cell, so that those who share it find it in cache.
inline void scan_apart(const ScanJob& job) {
  constexpr std::size_t share = 16;
  std::vector<std::size_t> order(job.queries);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return job.probes[a * job.probe_count] < job.probes[b * job.probe_count];
  });
  run_tasks((job.queries + share - 1) / share, job.threads, [&] {
    return [&job, &order, probing = std::make_unique<ProbeScan>(job)](std::size_t task) {
      for (std::size_t i = task * share; i < std::min((task + 1) * share, job.queries); ++i) probing->scan(order[i]);
    };
  });
}

inline void scan(const ScanJob& job) {
  // A base beyond caches is worth reading once for many queries; where it is not, each query has its nearest cells
  // first, and with them a low limit for the others.
  constexpr std::size_t cached = std::size_t{16} << 20;
  const bool together = job.n * job.bytes > cached && job.queries * job.probe_count >= 4 * job.cells;
  if (job.probes && !together) return scan_apart(job);
  // Threads share the queries where there are enough of them, in groups that pass over the base together; else the
  // base, in ranges, each of which starts without a limit.
  constexpr std::size_t most = 64, least = 4, shortest = 512;  // queries a group, blocks a range
  const std::size_t blocks = (job.n + scan_block - 1) / scan_block;
  const std::size_t share = (job.queries + job.threads - 1) / job.threads;
  const std::size_t group =
      std::min(job.probes ? 16 * most : most, std::max(least, (share + least - 1) / least * least));
  const std::size_t groups = (job.queries + group - 1) / group;
  std::size_t ranges = 1;
  if (groups < job.threads && groups > 0 && !job.probes)
    ranges = std::max<std::size_t>(1, std::min<std::size_t>((job.threads + groups - 1) / groups, blocks / shortest));
  std::vector<std::vector<std::unique_ptr<ScanQuery>>> found(groups * ranges);
  run_tasks(groups * ranges, job.threads, [&] {
    return [&](std::size_t task) {
      const std::size_t g = task / ranges, range = task % ranges, first = g * group;
      auto& queries = found[task];
      for (std::size_t q = first; q < std::min(first + group, job.queries); ++q)
        queries.emplace_back(std::make_unique<ScanQuery>(job))->start(q);
      if (job.probes)
        scan_cells(job, queries, first);
      else
        scan_blocks(job, queries, blocks * range / ranges, blocks * (range + 1) / ranges);
      if (ranges > 1) {
        for (auto& query : queries) query->best.cut();
        return;
      }
      for (std::size_t q = 0; q < queries.size(); ++q)
        queries[q]->best.write(job.scores + (first + q) * job.k, job.ids + (first + q) * job.k);
      queries.clear();
    };
  });
  if (ranges == 1) return;
  for (std::size_t g = 0; g < groups; ++g)
    for (std::size_t q = 0; q < found[g * ranges].size(); ++q) {
      Best& best = found[g * ranges][q]->best;
      for (std::size_t range = 1; range < ranges; ++range) best.merge(found[g * ranges + range][q]->best);
      best.write(job.scores + (g * group + q) * job.k, job.ids + (g * group + q) * job.k);
    }
}

}  // namespace antisparse::ANTISPARSE_ISA
