// Queries that visit their cells each by itself.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "machine/threads.hpp"
#include "scan/passes.hpp"

namespace antisparse::ANTISPARSE_ISA {

// One query over the cells it probes, in their order: the first codes gathered, the others by the limit these set.
class ProbeScan {
 public:
  explicit ProbeScan(const ScanJob& job)
      : job_(job), query_(job, scratch_), longest_(longest_chunk(job)), masks_(longest_) {}

  // `next` is the query that follows, whose tables are asked for on the way.
  void scan(std::size_t query, std::size_t next) {
    const std::int32_t* soon = job_.queries.table(next);
    for (std::size_t i = 0; i < 16 * job_.codes.nibbles(); i += 16) ask_for(soon + i);
    number_ = query;
    probe_ = 0;
    query_.start(query);
    enter();
    ScanQuery* const one = &query_;
    while (probe_ < job_.queries.visited) {
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
    for (std::size_t left = first_blocks(job_); left > 0 && probe_ < job_.queries.visited;) {
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
    for (; probe_ < job_.queries.visited; ++probe_) {
      const std::int64_t cell = job_.queries.probes[number_ * job_.queries.visited + probe_];
      at_ = static_cast<std::size_t>(cell ? job_.codes.cell_ends[cell - 1] : 0);
      end_ = static_cast<std::size_t>(job_.codes.cell_ends[cell]);
      if (at_ < end_) return;
    }
  }

  const ScanJob& job_;
  Scratch scratch_;
  ScanQuery query_;
  std::size_t longest_;
  std::vector<std::uint32_t> masks_;
  std::size_t number_ = 0, probe_ = 0, at_ = 0, end_ = 0;
};

// Each query by itself; by their first cell, so that those who share it find it in cache.
inline void scan_apart(const ScanJob& job) {
  constexpr std::size_t share = 16;
  std::vector<std::size_t> order(job.queries.count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return job.queries.probes[a * job.queries.visited] < job.queries.probes[b * job.queries.visited];
  });
  run_tasks((job.queries.count + share - 1) / share, job.threads, [&] {
    return [&job, &order, probing = std::make_unique<ProbeScan>(job)](std::size_t task) {
      for (std::size_t i = task * share; i < std::min((task + 1) * share, job.queries.count); ++i)
        probing->scan(order[i], order[std::min(i + 1, order.size() - 1)]);
    };
  });
}

}  // namespace antisparse::ANTISPARSE_ISA
