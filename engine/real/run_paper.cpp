#include "engine/real/run_paper.h"

#include <fmt/format.h>

#include <fstream>

namespace areal::real {
namespace {

std::filesystem::path paper_file(const std::filesystem::path& folder) { return folder / "run.txt"; }

}  // namespace

Status write_paper(const std::filesystem::path& folder, const RunPaper& paper) {
  std::ofstream out(paper_file(folder), std::ios::trunc);
  out << fmt::format("run {}\nseed {}\nepoch_ns {}\naddress {}\n", paper.run, paper.seed, paper.epoch.ns,
                     paper.address);
  out.close();
  if (!out) return Error{Errc::kIo, fmt::format("{} cannot be written", paper_file(folder).string())};
  return Unit{};
}

Result<RunPaper> read_paper(const std::filesystem::path& folder) {
  std::ifstream in(paper_file(folder));
  if (!in) return Error{Errc::kIo, fmt::format("{} cannot be read", paper_file(folder).string())};
  RunPaper paper;
  std::string key;
  while (in >> key) {
    if (key == "run") {
      in >> paper.run;
    } else if (key == "seed") {
      in >> paper.seed;
    } else if (key == "epoch_ns") {
      in >> paper.epoch.ns;
    } else if (key == "address") {
      in >> paper.address;
    } else {
      in.setstate(std::ios::failbit);
    }
    if (!in) return Error{Errc::kInvalid, fmt::format("{}: '{}' is no line of it", paper_file(folder).string(), key)};
  }
  return paper;
}

std::filesystem::path scenario_file(const std::filesystem::path& folder) { return folder / "scenario.yaml"; }
std::filesystem::path secret_file(const std::filesystem::path& folder) { return folder / "secret"; }
std::filesystem::path recording_file(const std::filesystem::path& folder, const std::string& node,
                                     std::uint32_t incarnation) {
  return folder / "recordings" / fmt::format("{}.{}.db", node, incarnation);
}
std::filesystem::path pid_file(const std::filesystem::path& folder, NodeId node) {
  return folder / "nodes" / fmt::format("{}.pid", node.value);
}
std::filesystem::path log_file(const std::filesystem::path& folder, const std::string& node) {
  return folder / "logs" / (node + ".log");
}

}  // namespace areal::real
