// Checks for tests of device code, which build without a test library: the machines they run on may have none.
#pragma once
#include <cstdio>

namespace areal::tests {

struct Tally {
  int passed = 0;
  int failed = 0;
};

inline Tally& tally() {
  static Tally kept;
  return kept;
}

inline bool expect(bool holds, const char* what, const char* file, int line) {
  ++(holds ? tally().passed : tally().failed);
  if (!holds) std::printf("%s:%d: does not hold: %s\n", file, line, what);
  return holds;
}

// Prints the sums; the exit status of the program.
inline int finish() {
  std::printf("%d expectations hold, %d do not\n", tally().passed, tally().failed);
  return tally().failed == 0 && tally().passed > 0 ? 0 : 1;
}

}  // namespace areal::tests

#define AREAL_EXPECT(condition) ::areal::tests::expect((condition), #condition, __FILE__, __LINE__)
