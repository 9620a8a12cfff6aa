// libFuzzer's way in: AREAL_FUZZ_TARGET names what is fuzzed, AREAL_FUZZ_SEEDS a folder to write its seeds to first.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/fuzz/targets.h"

namespace {

const areal::fuzz::Target* g_target =
    nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): libFuzzer's

void write_seeds(const areal::fuzz::Target& target, const std::string& folder) {
  int number = 0;
  for (const areal::fuzz::Bytes& seed : target.seeds()) {
    std::ofstream file(folder + "/seed" + std::to_string(number++), std::ios::binary);
    for (const std::uint8_t byte : seed) file.put(static_cast<char>(byte));
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* const name = std::getenv("AREAL_FUZZ_TARGET");  // NOLINT(concurrency-mt-unsafe): before any thread.
  g_target = areal::fuzz::find_target(name == nullptr ? "" : name);
  if (g_target == nullptr) {
    std::fputs("AREAL_FUZZ_TARGET must be one of:", stderr);
    for (const areal::fuzz::Target& one : areal::fuzz::targets()) std::fprintf(stderr, " %s", one.name.data());
    std::fputs("\n", stderr);
    std::exit(64);  // NOLINT(concurrency-mt-unsafe): there is one thread.
  }
  const char* const folder = std::getenv("AREAL_FUZZ_SEEDS");  // NOLINT(concurrency-mt-unsafe): as above.
  if (folder != nullptr) write_seeds(*g_target, folder);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  g_target->one({data, size});
  return 0;
}
