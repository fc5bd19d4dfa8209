// Plain threads for the length of one call: nothing outlives it, so a process may fork between calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "machine/watch.hpp"

namespace antisparse {

// Runs the tasks 0, ..., count - 1, taken in order, on at most `threads` threads, this one among them. Each thread
// calls make() once for a task runner of its own and then runner(i). An exception of one stops all, and is thrown on.
template <class Make>
void run_tasks(std::size_t count, unsigned threads, const Make& make) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t working = 0;  // of the other threads
  std::exception_ptr error;
  const auto guarded = [&](const auto& todo) {
    try {
      todo();
    } catch (const Stopped&) {  // by the error of another
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!error) error = std::current_exception();
      stop = true;
    }
  };
  const auto work = [&](bool helps) {
    guarded([&] {
      const Watched watched(stop, helps);
      auto runner = make();
      for (std::size_t i; !stop && (i = next.fetch_add(1)) < count;) runner(i);
    });
  };
  const auto help = [&] {
    work(true);
    const std::lock_guard<std::mutex> lock(mutex);
    if (--working == 0) ended.notify_one();
  };
  const std::size_t wanted = std::min<std::size_t>(threads, count);
  std::vector<std::thread> others;
  others.reserve(wanted);
  try {
    while (others.size() + 1 < wanted) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        ++working;
      }
      others.emplace_back(help);
    }
  } catch (const std::exception&) {
    // No more threads to be had: those that started, and this one, do the work.
    const std::lock_guard<std::mutex> lock(mutex);
    --working;
  }
  if (count > 0) work(false);
  std::unique_lock<std::mutex> lock(mutex);
  while (working > 0) {
    // By the system's clock, since to wait by the steady one takes glibc 2.30. If it is set back in just this moment,
    // only the next look at signals comes late.
    const auto until = std::chrono::system_clock::now() + std::chrono::milliseconds(100);
    if (ended.wait_until(lock, until) == std::cv_status::no_timeout) continue;
    lock.unlock();
    if (!stop) guarded(ask_watch);
    lock.lock();
  }
  lock.unlock();
  for (std::thread& thread : others) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace antisparse
