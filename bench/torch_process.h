// A script of bench/peers in a process of the system's Python, on copies of the benchmark's arrays.
#pragma once
#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace areal::bench {

// Raw bytes of one array, and the file's name under which the script finds them.
struct SharedArray {
  std::string name;
  std::span<const std::byte> bytes;
};

// One caller.
class TorchProcess {
 public:
  // Starts `script FOLDER THREADS`, which answers "ready VERSION". Nothing where it cannot run; `why` says why.
  static std::unique_ptr<TorchProcess> start(const std::string& script, const std::vector<SharedArray>& arrays,
                                             std::uint32_t threads, std::string& why);
  ~TorchProcess();
  TorchProcess(const TorchProcess&) = delete;
  TorchProcess& operator=(const TorchProcess&) = delete;

  [[nodiscard]] const std::string& version() const { return version_; }
  // Sends a line, unless it is empty, and returns the answer without its end; empty when the other side has ended.
  std::string ask(const std::string& line);
  // What the script wrote into the folder; false where it is not that long.
  bool read(const std::string& name, std::span<std::byte> into) const;

 private:
  TorchProcess() = default;

  std::string folder_;
  std::string version_;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  pid_t process_ = -1;
};

}  // namespace areal::bench
