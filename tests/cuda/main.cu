// Tests that need a device. Says "skipped: no device" and succeeds where there is none.
//
//   delta_gpu_test            all
//   delta_gpu_test --small    without what takes much time or memory, as for compute-sanitizer
//   delta_gpu_test --detect   the detector's alone
//   delta_gpu_test --wire     those of the wire coding alone
#include <cstring>

#include "tests/cuda/device_array.h"
#include "tests/cuda/expect.h"

void test_detect(std::size_t steps);  // Of so many optimizer steps.
void test_apply();
void test_scan();
void test_large();
void test_wire(std::uint32_t rounds);  // Of damage.
void test_wire_large();

int main(int argc, char** argv) {
  if (!areal::tests::has_device()) {
    std::printf("skipped: no device\n");
    return 0;
  }
  const bool is_small = argc > 1 && std::strcmp(argv[1], "--small") == 0;
  const bool is_detect = argc > 1 && std::strcmp(argv[1], "--detect") == 0;
  const bool is_wire = argc > 1 && std::strcmp(argv[1], "--wire") == 0;
  if (!is_wire) test_detect(is_small ? 1 : 100);
  if (!is_detect && !is_wire) test_apply();
  if (!is_detect && !is_wire) test_scan();
  if (!is_detect) test_wire(is_small ? 20 : 2000);
  if (!is_small && !is_wire) test_large();
  if (!is_small && !is_detect) test_wire_large();
  return areal::tests::finish();
}
