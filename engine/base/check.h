// AREAL_CHECK stops the program when the code itself is wrong; it stays on in release builds.
//
// What a peer, a client, a duplicate or a defect can cause is a refusal, never a check. A real process aborts; a
// simulation installs a handler that records a violation instead.
#pragma once
namespace areal {

// Called by a failed check. Must not return: it ends the process, or leaves by an exception that the simulator catches.
// Destructors of core code do not run on that way: what was under work must not be used again.
using CheckHandler = void (*)(const char* condition, const char* file, int line);

// Replaces the handler and returns the one before. Not thread-safe: call it before any thread starts.
CheckHandler set_check_handler(CheckHandler handler);

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace areal

#define AREAL_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::areal::check_failed(#condition, __FILE__, __LINE__))
