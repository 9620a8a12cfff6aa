#include "engine/real/accel/rendezvous_store.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <system_error>

namespace areal::accel {
namespace {

namespace fs = std::filesystem;

// The folder may vanish in between, when the last value of somebody else was erased.
constexpr int kTries = 8;

// No key is like that.
constexpr const char* kClosed = ".closed";

// Two threads of one process may write the same key; only one of them may win.
std::string unique_name(const std::string& key) {
  static std::atomic<unsigned> counter{0};
  return "." + key + "." + std::to_string(getpid()) + "." + std::to_string(counter.fetch_add(1));
}

}  // namespace

bool FolderStore::put(const std::string& key, std::span<const char> value) {
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::error_code error;
    fs::create_directories(folder_, error);
    const fs::path draft = folder_ / unique_name(key);
    std::ofstream file(draft, std::ios::binary);
    file.write(value.data(), static_cast<std::streamsize>(value.size()));
    file.close();
    if (!file) continue;
    // Unlike a rename, a link never takes the place of what is there.
    fs::create_hard_link(draft, folder_ / key, error);
    const bool written = !error;
    const bool taken = error == std::errc::file_exists;
    fs::remove(draft, error);
    if (written || taken) return written;
  }
  return false;
}

std::optional<std::vector<char>> FolderStore::get(const std::string& key) const {
  std::ifstream file(folder_ / key, std::ios::binary);
  if (!file) return std::nullopt;
  return std::vector<char>(std::istreambuf_iterator<char>(file), {});
}

bool FolderStore::has(const std::string& key) const {
  std::error_code error;
  return fs::exists(folder_ / key, error);
}

void FolderStore::erase(const std::string& key) {
  std::error_code error;
  fs::remove(folder_ / key, error);
  fs::remove(folder_, error);  // Fails, as it should, while somebody has a value in it.
}

void FolderStore::close() {
  std::error_code error;
  if (fs::exists(folder_, error)) std::ofstream(folder_ / kClosed);
}

bool FolderStore::is_closed() const {
  std::error_code error;
  return fs::exists(folder_ / kClosed, error);
}

}  // namespace areal::accel
