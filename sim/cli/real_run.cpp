#include "sim/cli/real_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/digest.h"
#include "engine/real/host/loop.h"
#include "engine/real/host/os_process.h"
#include "engine/real/host/run_folder.h"
#include "engine/real/note_lines.h"
#include "engine/real/run_paper.h"

namespace areal::cli {
namespace {

constexpr int kPollMs = 50;
constexpr Duration kGrace = 8_s;
// What is said after the end of the loop, and what the last messages lead to, is heard for so long.
constexpr auto kAfterEnd = std::chrono::milliseconds(300);

using Clock = std::chrono::steady_clock;

struct Member {
  std::string name;
  std::unique_ptr<host::OsProcess> process;
  std::string rest;  // Of a line that has not ended yet.
  std::ofstream log;
  bool gone = false;
};

struct Stopped {
  NodeId node{};
  Clock::time_point until;
};

class RealRun {
 public:
  RealRun(const RealRunSettings& settings, host::RunFolder folder)
      : settings_(settings), folder_(std::move(folder)), begin_(Clock::now()) {}

  Status start() {
    real::RunPaper paper;
    paper.run = hash_text(folder_.run_id(), 0).low;
    paper.seed = settings_.seed;
    paper.epoch = host::Loop::machine_now();
    AREAL_TRY(real::write_paper(folder_.path(), paper));
    std::ofstream scenario(real::scenario_file(folder_.path()));
    scenario << settings_.room->scenario.resolved;
    scenario.close();
    if (!scenario) return Error{Errc::kIo, "the run's scenario cannot be written"};
    for (const sim::RoomNode& node : settings_.room->nodes) {
      if (node.starter.value == 0) AREAL_TRY(start_member(node));
    }
    return Unit{};
  }

  RealRunResult watch() {
    RealRunResult result;
    result.recordings = folder_.recordings();
    while (result.failure.empty() && !result.interrupted) {
      look();
      result.interrupted = settings_.interrupted && settings_.interrupted();
      if (Clock::now() - begin_ > std::chrono::nanoseconds(settings_.limit.ns)) result.failure = "took too long";
      if (ended_) {
        if (Clock::now() - ended_at_ > kAfterEnd) break;
      } else if (!lost_.empty()) {
        result.failure = lost_;
      }
    }
    stop_all();
    result.end = ended_;
    return result;
  }

 private:
  Status start_member(const sim::RoomNode& node) {
    host::ProcessRecipe recipe;
    recipe.argv = {settings_.program.string(), "--run", folder_.path().string(), "--node", node.name, "--notes"};
    recipe.environment.push_back({"AREAL_RUN_ID", folder_.run_id()});
    recipe.output = host::ProcessOutput::kPipe;
    auto process = host::OsProcess::start(recipe);
    if (!process) return std::move(process).error();
    Member& member = members_.emplace_back();
    member.name = node.name;
    member.process = std::move(*process);
    member.log.open(real::log_file(folder_.path(), node.name));
    return Unit{};
  }

  void look() {
    std::vector<pollfd> fds;
    for (const Member& member : members_) fds.push_back({member.process->output_fd(), POLLIN, 0});
    ::poll(fds.data(), fds.size(), kPollMs);
    for (Member& member : members_) {
      read_lines(member);
      if (member.gone) continue;
      const auto exit = member.process->poll();
      if (!exit) continue;
      member.gone = true;
      if (!ending_)
        lost_ = fmt::format("{} ended with {}{}", member.name, exit->word(),
                            exit->reason.empty() ? "" : ": " + exit->reason);
    }
    const auto now = Clock::now();
    std::erase_if(stopped_, [&](const Stopped& one) {
      if (now < one.until) return false;
      signal(one.node, SIGCONT);
      return true;
    });
  }

  void read_lines(Member& member) {
    char buffer[16384];
    while (true) {
      const ssize_t got = ::read(member.process->output_fd(), buffer, sizeof buffer);
      if (got <= 0) return;
      member.rest.append(buffer, static_cast<std::size_t>(got));
      std::size_t begin = 0;
      for (std::size_t end = member.rest.find('\n'); end != std::string::npos; end = member.rest.find('\n', begin)) {
        take_line(member, std::string_view(member.rest).substr(begin, end - begin));
        begin = end + 1;
      }
      member.rest.erase(0, begin);
    }
  }

  void take_line(Member& member, std::string_view line) {
    if (const auto event = real::event_of(line)) {
      if (settings_.notes != nullptr) settings_.notes->on_event(*event);
      if (event->body.kind == port::RunEnded::kKind && !ended_) {
        ended_ = from_record<port::RunEnded>(event->body);
        ended_at_ = Clock::now();
      }
    } else if (const auto order = real::order_of(line)) {
      carry_out(*order);
    } else {
      member.log << line << '\n';
    }
  }

  void carry_out(const real::FaultOrder& order) {
    if (order.kill) {
      signal(order.node, SIGKILL);
      return;
    }
    signal(order.node, SIGSTOP);
    stopped_.push_back({order.node, Clock::now() + std::chrono::nanoseconds(order.lasts.ns)});
  }

  void signal(NodeId node, int number) const {
    pid_t pid = 0;
    std::ifstream file(real::pid_file(folder_.path(), node));
    if (file >> pid && pid > 1) ::kill(pid, number);
  }

  void stop_all() {
    ending_ = true;
    for (const Stopped& one : stopped_) signal(one.node, SIGCONT);
    for (Member& member : members_) member.process->stop(kGrace);
    const auto until = Clock::now() + std::chrono::nanoseconds(kGrace.ns) + std::chrono::seconds(3);
    while (Clock::now() < until && !std::ranges::all_of(members_, [](const Member& member) { return member.gone; })) {
      look();
    }
    members_.clear();  // Kills what is left.
  }

  const RealRunSettings& settings_;
  host::RunFolder folder_;
  Clock::time_point begin_;
  std::vector<Member> members_;
  std::vector<Stopped> stopped_;
  std::optional<port::RunEnded> ended_;
  Clock::time_point ended_at_;
  std::string lost_;
  bool ending_ = false;
};

}  // namespace

Result<RealRunResult> run_real(const RealRunSettings& settings) {
  const auto run_id = host::draw_run_id();
  if (!run_id) return run_id.error();
  auto folder = host::RunFolder::create(settings.folder, *run_id);
  if (!folder) return std::move(folder).error();
  RealRun run(settings, std::move(*folder));
  AREAL_TRY(run.start());
  return run.watch();
}

}  // namespace areal::cli
