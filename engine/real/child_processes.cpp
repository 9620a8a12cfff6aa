#include "engine/real/child_processes.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "engine/base/rng.h"

namespace areal::real {
namespace {

constexpr Duration kLookEvery = 10_ms;
constexpr Duration kEndGrace = 3_s;
constexpr int kEndLooks = 500;  // Of kLookEvery each.
// A child that does not say where it listens for so long counts as started: what hangs is for its watchers to notice.
constexpr Duration kUpBound = 10_s;

}  // namespace

ChildProcesses::ChildProcesses(host::Loop& loop, const node::RoomPlan& room, std::filesystem::path folder,
                               std::uint64_t seed)
    : loop_(loop),
      room_(room),
      folder_(std::move(folder)),
      book_(folder_.string()),
      drawn_(seed),
      incarnations_(room.nodes.size() + 1, 0) {}

std::uint16_t ChildProcesses::lease_port() {
  drawn_ = mix_words(drawn_, leases_.size());
  const auto first = static_cast<std::uint16_t>(host::kFirstPort + drawn_ % host::kPorts);
  const auto leased = leases_.lease(1, first);
  return leased ? leased->front() : std::uint16_t{0};
}

void ChildProcesses::start(NodeId node, std::uint16_t port, std::function<void(Incarnation)> started,
                           std::function<void(Incarnation, std::int32_t)> exited) {
  const bool runs = std::ranges::any_of(children_, [&](const Child& child) { return child.node == node; });
  const bool known = node.value >= 1 && node.value <= room_.nodes.size();
  bool begun = false;
  if (known && !runs) {
    host::ProcessRecipe recipe;
    const Incarnation next = incarnations_[node.value] + 1;
    recipe.argv = {"/proc/self/exe",      "--run",         folder_.string(),     "--node",
                   room_.node(node).name, "--incarnation", std::to_string(next), "--port",
                   std::to_string(port),  "--notes"};
    auto process = host::OsProcess::start(recipe);
    if (process) {
      incarnations_[node.value] = next;
      children_.push_back({node, next, std::move(*process), started, std::move(exited), loop_.now()});
      begun = true;
    }
  }
  if (!begun) loop_.post([started = std::move(started)] { started(0); });
  if (!std::exchange(looking_, true)) loop_.arm(kLookEvery, [this] { look(); });
}

void ChildProcesses::stop(NodeId node, Duration grace) {
  for (Child& child : children_) {
    if (child.node == node) child.process->stop(grace);
  }
}

bool ChildProcesses::is_up(const Child& child) {
  const auto address = book_.find(child.node);
  return (address && address->incarnation == child.incarnation) || loop_.now() - child.since > kUpBound;
}

void ChildProcesses::look() {
  std::vector<std::function<void()>> news;
  std::erase_if(children_, [&](Child& child) {
    const auto exit = child.process->poll();
    if (child.started && (exit || is_up(child))) {
      news.emplace_back(
          [started = std::exchange(child.started, nullptr), incarnation = child.incarnation] { started(incarnation); });
    }
    if (!exit) return false;
    news.emplace_back([exited = std::move(child.exited), incarnation = child.incarnation, code = exit->word()] {
      exited(incarnation, code);
    });
    return true;
  });
  for (const auto& tell : news) tell();
  looking_ = !children_.empty();
  if (looking_) loop_.arm(kLookEvery, [this] { look(); });
}

void ChildProcesses::end_all() {
  for (Child& child : children_) child.process->stop(kEndGrace);
  for (int i = 0; i < kEndLooks && !children_.empty(); ++i) {
    std::erase_if(children_, [](Child& child) { return child.process->poll().has_value(); });
    std::this_thread::sleep_for(std::chrono::nanoseconds(kLookEvery.ns));
  }
}

}  // namespace areal::real
