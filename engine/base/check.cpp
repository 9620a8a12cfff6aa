#include "engine/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace areal {
namespace {

CheckHandler g_handler = nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): set once by main

}  // namespace

CheckHandler set_check_handler(CheckHandler handler) {
  CheckHandler before = g_handler;
  g_handler = handler;
  return before;
}

void check_failed(const char* condition, const char* file, int line) {
  if (g_handler != nullptr) g_handler(condition, file, line);
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace areal
