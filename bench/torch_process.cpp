#include "bench/torch_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

namespace areal::bench {
namespace {

bool write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const std::size_t written = std::fwrite(bytes.data(), 1, bytes.size(), file);
  return (std::fclose(file) == 0) && written == bytes.size();
}

}  // namespace

std::unique_ptr<TorchProcess> TorchProcess::start(const std::string& script, const std::vector<SharedArray>& arrays,
                                                  std::uint32_t threads, std::string& why) {
  std::unique_ptr<TorchProcess> peer(new TorchProcess());
  std::string folder =
      (std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path().string()) +
      "/areal-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    why = "no folder for the arrays";
    return nullptr;
  }
  peer->folder_ = folder;
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  bool has_room = true;
  for (const SharedArray& array : arrays) has_room = has_room && write_file(folder + "/" + array.name, array.bytes);
  if (!has_room || pipe(to.data()) != 0 || pipe(from.data()) != 0) {
    why = "no room for the arrays";
    return nullptr;
  }
  const std::string thread_count = std::to_string(threads);
  peer->process_ = fork();
  if (peer->process_ == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
    // The system's Python: that is where Debian puts python3-torch.
    execl("/usr/bin/python3", "python3", script.c_str(), folder.c_str(), thread_count.c_str(), nullptr);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  peer->to_ = fdopen(to[1], "w");
  peer->from_ = fdopen(from[0], "r");
  const std::string hello = peer->ask("");
  if (!hello.starts_with("ready ")) {
    why = hello.empty() ? script + " did not start; install python3-torch" : hello;
    return nullptr;
  }
  peer->version_ = hello.substr(6);
  return peer;
}

TorchProcess::~TorchProcess() {
  if (to_ != nullptr) std::fclose(to_);
  if (from_ != nullptr) std::fclose(from_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
  if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

std::string TorchProcess::ask(const std::string& line) {
  if (!line.empty()) {
    std::fprintf(to_, "%s\n", line.c_str());
    std::fflush(to_);
  }
  std::array<char, 256> answer{};
  if (std::fgets(answer.data(), answer.size(), from_) == nullptr) return {};
  std::string text = answer.data();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool TorchProcess::read(const std::string& name, std::span<std::byte> into) const {
  std::FILE* file = std::fopen((folder_ + "/" + name).c_str(), "rb");
  if (file == nullptr) return false;
  const std::size_t count = std::fread(into.data(), 1, into.size(), file);
  std::fclose(file);
  return count == into.size();
}

}  // namespace areal::bench
