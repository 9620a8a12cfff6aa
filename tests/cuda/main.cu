// Tests that need a device. Says "skipped: no device" and succeeds where there is none.
//
//   delta_gpu_test            all
//   delta_gpu_test --small    without what takes much time or memory, as for compute-sanitizer
//   delta_gpu_test --detect   those of the detector
//   delta_gpu_test --apply    those of patches and scans
//   delta_gpu_test --wire     those of the wire coding
//
// Options may be joined: --small --wire.
#include <algorithm>
#include <cstring>

#include "tests/cuda/device_array.h"
#include "tests/cuda/expect.h"

void test_detect(std::size_t steps);  // Of so many optimizer steps.
void test_apply();
void test_scan();
void test_detect_large();
void test_apply_large();
void test_wire(std::uint32_t rounds);  // Of damage.
void test_wire_large();

int main(int argc, char** argv) {
  if (!areal::tests::has_device()) {
    std::printf("skipped: no device\n");
    return 0;
  }
  const auto has = [&](const char* option) {
    return std::any_of(argv + 1, argv + argc, [&](const char* given) { return std::strcmp(given, option) == 0; });
  };
  const bool is_small = has("--small");
  const bool is_all = !has("--detect") && !has("--apply") && !has("--wire");
  if (is_all || has("--detect")) {
    test_detect(is_small ? 1 : 100);
    if (!is_small) test_detect_large();
  }
  if (is_all || has("--apply")) {
    test_apply();
    test_scan();
    if (!is_small) test_apply_large();
  }
  if (is_all || has("--wire")) {
    test_wire(is_small ? 20 : 2000);
    if (!is_small) test_wire_large();
  }
  return areal::tests::finish();
}
