// Plain threads for the length of one call: nothing outlives it, so a process may fork between calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace antisparse {

// Runs the tasks 0, ..., count - 1, taken in order, on at most `threads` threads, this one among them. Each thread
// calls make() once for a task runner of its own and then runner(i). An exception of one is thrown on.
template <class Make>
void run_tasks(std::size_t count, unsigned threads, const Make& make) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      auto runner = make();
      for (std::size_t i; (i = next.fetch_add(1)) < count;) runner(i);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      error = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> others;
  others.reserve(std::min<std::size_t>(threads, count));
  try {
    while (others.size() + 1 < std::min<std::size_t>(threads, count)) others.emplace_back(work);
  } catch (const std::exception&) {
    // No more threads to be had: those that started, and this one, do the work.
  }
  if (count > 0) work();
  for (std::thread& thread : others) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace antisparse
