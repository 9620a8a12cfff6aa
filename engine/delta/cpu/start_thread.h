// A thread for a share of some work; where none can be started the caller does it, with the same result.
#pragma once
#include <system_error>
#include <thread>

namespace areal::delta {

// Runs `work` in a thread, or here if none can be started: then what is returned cannot be joined.
template <class Work>
std::thread start_thread(const Work& work) {
  try {
    return std::thread(work);
  } catch (const std::system_error&) {
    work();
    return {};
  }
}

}  // namespace areal::delta
