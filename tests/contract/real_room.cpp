#include "tests/contract/real_room.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "engine/base/check.h"
#include "engine/base/digest.h"
#include "engine/config/scenario_yaml.h"
#include "engine/node/room_plan.h"
#include "engine/real/host/loop.h"
#include "engine/real/host/os_process.h"
#include "engine/real/host/run_folder.h"
#include "engine/real/run_paper.h"
#include "tests/contract/far_ports.h"
#include "tests/contract/open_asks.h"
#include "tests/contract/seat_program.h"
#include "tests/contract/seat_wire.h"
#include "tests/unit/temp_folder.h"

namespace areal::test {
namespace {

constexpr std::string_view kScenario = R"(
scenario:
  name: port_contract
  why: One engine, one trainer, no protocols.
  model: tiny
  train: {backend: "megatron:d1", step_time: 500ms}
  rollout: {backend: "sglang:d1t1", max_new_tokens: 1024, tokens_per_second: 400}
  devices: {memory: 64MiB, load_time: 200ms, start_time: 50ms}
)";
constexpr std::uint64_t kRunSeed = 1;

// A room has come to rest when nothing was told for so long: with nothing open, with only what needs others open, and
// with something open that ends by itself.
constexpr Duration kAllEnded = 60_ms;
constexpr Duration kNobodyAnswers = 1_s;
constexpr Duration kPatience = 30_s;
constexpr Duration kLook = 10_ms;

constexpr std::array kSeats{Seat::kEngine, Seat::kTrainer, Seat::kOther, Seat::kGuard};

const node::RoomPlan& room_plan() {
  static const node::RoomPlan once = [] {
    const config::ReadScenario read = config::read_scenario(std::string(kScenario), "port_contract.yaml");
    AREAL_CHECK(read.scenario.has_value());
    auto plan = node::plan_room(*read.scenario, {});
    AREAL_CHECK(plan.has_value());
    return std::move(*plan);
  }();
  return once;
}

NodeId node_of(Seat seat) {
  const proto::ClusterMap& cluster = room_plan().cluster;
  switch (seat) {
    case Seat::kEngine:
      return cluster.engine_ranks[0];
    case Seat::kTrainer:
      return cluster.trainers[0];
    case Seat::kOther:
      return cluster.gateway;
    case Seat::kGuard:
      return cluster.guards[0];
  }
  return {};
}

// One node: its process, and what that was told.
struct SeatState {
  NodeId node{};
  std::unique_ptr<host::OsProcess> process;  // None for the trainer: it is the guard's child.
  SeatSocket socket;                         // Open as long as the process lives.
  Incarnation incarnation = 0;
  Incarnation announced = 0;  // Started, as its starter was told.
  pid_t pid = 0;
  std::vector<SeatPacket> told;  // By the present process.
  std::size_t shown = 0;         // How many of them the time has come for.
  std::uint64_t done = 0;        // Orders carried out.
  Instant done_at{};             // When the last of them began.
  std::unique_ptr<FarPorts> ports;
};

// The time of this room is that of the last call, or the end of the last wait: what happens meanwhile is not yet seen.
class RealRoom final : public PortHarness {
 public:
  RealRoom() : folder_(make_folder()), listener_(seats_of(folder_.path())) {
    for (const Seat seat : kSeats) make_seat(seat);
    for (const Seat seat : {Seat::kEngine, Seat::kOther, Seat::kGuard}) start(state(seat));
    wait_until([&] { return lives(Seat::kEngine) && lives(Seat::kOther) && lives(Seat::kGuard); });
    restart(Seat::kTrainer);
    settle();
    for (SeatState& one : seats_) one.told.clear(), one.shown = 0;
  }
  ~RealRoom() override {
    state(Seat::kGuard).process.reset();  // Before its child: so it starts no other.
  }

  [[nodiscard]] HarnessFacts facts() const override {
    const node::RoomPlan& room = room_plan();
    HarnessFacts facts;
    facts.memory = room.scenario.devices.memory;
    facts.reset_after = 1_s;
    facts.silence = 1_s;
    for (const proto::MemberPass& pass : room.members->front().passes) facts.payload.push_back(pass.wire);
    facts.max_tokens = room.scenario.rollout.max_new_tokens;
    return facts;
  }
  [[nodiscard]] NodeId node(Seat seat) const override { return state(seat).node; }
  [[nodiscard]] Incarnation incarnation(Seat seat) const override { return state(seat).incarnation; }
  node::Ports& ports(Seat seat) override { return *state(seat).ports; }

  [[nodiscard]] std::vector<proto::Input> seen(Seat seat, SlotId slot) const override {
    const SeatState& at = state(seat);
    std::vector<proto::Input> inputs;
    for (std::size_t i = 0; i < at.shown; ++i) {
      const auto input = proto::input_of(at.told[i].what);
      if (input && at.told[i].slot == slot) inputs.push_back(*input);
    }
    return inputs;
  }

  void pass(Duration duration) override {
    time_ = time_ + duration;
    while (now() < time_) look(std::min(kLook, time_ - now()));
    show();
  }
  void settle() override {
    Instant last = now();
    for (;;) {
      if (look(kLook)) last = now();
      const bool arriving =
          std::ranges::any_of(seats_, [](const SeatState& one) { return one.announced > one.incarnation; });
      const bool rests = asks_.is_empty() && !arriving;
      const bool may_rest = asks_.all_need_others() && !arriving;
      if (now() - last >= (rests ? kAllEnded : may_rest ? kNobodyAnswers : kPatience)) break;
    }
    time_ = now();
    show();
  }
  void kill(Seat seat) override {
    SeatState& at = state(seat);
    if (at.process == nullptr) asks_.expect_exit(node(Seat::kGuard), at.node);
    ::kill(at.pid, SIGKILL);
    wait_until([&] { return !at.socket.is_open(); });
    time_ = now();
  }
  void restart(Seat seat) override {
    SeatState& at = state(seat);
    const Incarnation before = at.incarnation;
    if (seat == Seat::kTrainer) {
      wait_until([&] { return !asks_.expects_exit(at.node); });
      ports(Seat::kGuard).process().start(kFirst, port::StartProcess{OpId{at.node.value}, at.node, 0});
    } else {
      start(at);
    }
    wait_until([&] { return at.incarnation > before; });
    time_ = now();
    show();
  }

 private:
  static constexpr SlotId kFirst{0};

  [[nodiscard]] SeatState& state(Seat seat) { return seats_[static_cast<std::size_t>(seat)]; }
  [[nodiscard]] const SeatState& state(Seat seat) const { return seats_[static_cast<std::size_t>(seat)]; }
  [[nodiscard]] SeatState* find(NodeId node) {
    const auto place = std::ranges::find(seats_, node, &SeatState::node);
    return place == seats_.end() ? nullptr : &*place;
  }
  [[nodiscard]] bool lives(Seat seat) const { return state(seat).socket.is_open(); }
  [[nodiscard]] Instant now() const { return {(host::Loop::machine_now() - epoch_).ns}; }

  host::RunFolder make_folder() {
    auto folder = host::RunFolder::create(temp_.path() / "run", "port-contract");
    AREAL_CHECK(folder.has_value());
    real::RunPaper paper;
    paper.run = hash_text(temp_.path().string(), 0).low;
    paper.seed = kRunSeed;
    paper.epoch = epoch_;
    AREAL_CHECK(real::write_paper(folder->path(), paper).has_value());
    std::ofstream(real::scenario_file(folder->path())) << kScenario;
    return std::move(*folder);
  }

  void make_seat(Seat seat) {
    SeatState& at = state(seat);
    at.node = node_of(seat);
    FarNode far;
    far.carry_out = [this, &at](SlotId slot, const proto::Effect& effect) {
      asks_.asked(at.node, slot, effect);
      const auto* stop = std::get_if<port::StopProcess>(&effect);
      if (stop != nullptr && lives(Seat::kTrainer)) asks_.expect_exit(at.node, stop->node);
      time_ = order(at, {.slot = slot, .what = proto::erase(effect)});
      for (std::size_t i = at.shown; i < at.told.size(); ++i) at.shown = at.told[i].within ? i + 1 : at.shown;
    };
    far.now = [this, &at] { return time_ = order(at, {}); };
    at.ports = std::make_unique<FarPorts>(std::move(far));
  }

  // As areal-sim starts areal-node.
  void start(SeatState& at) {
    host::ProcessRecipe recipe;
    recipe.argv = {"/proc/self/exe",
                   "--run",
                   folder_.path().string(),
                   "--node",
                   room_plan().node(at.node).name,
                   "--incarnation",
                   std::to_string(at.incarnation + 1)};
    recipe.output = host::ProcessOutput::kFile;
    recipe.output_file = real::log_file(folder_.path(), room_plan().node(at.node).name);
    at.process.reset();
    auto process = host::OsProcess::start(recipe);
    AREAL_CHECK(process.has_value());
    at.process = std::move(*process);
  }

  // Has it carried out, and says when that began.
  Instant order(SeatState& at, const SeatPacket& packet) {
    const std::uint64_t before = at.done;
    if (!at.socket.send(packet)) ADD_FAILURE() << "node " << at.node.value << " does not live";
    wait_until([&] { return at.done > before || !at.socket.is_open(); });
    return at.done_at;
  }

  template <class Holds>
  void wait_until(Holds&& holds) {
    const Instant until = now() + kPatience;
    while (!holds()) {
      look(kLook);
      if (now() < until) continue;
      ADD_FAILURE() << "waited in vain";
      return;
    }
  }

  // Shows what was told up to the room's time; all that was has been heard then.
  void show() {
    for (SeatState& at : seats_) {
      if (at.socket.is_open()) order(at, {});
      while (at.shown < at.told.size() && at.told[at.shown].at <= time_) ++at.shown;
    }
  }

  // Hears whoever says something, for so long at most until the first does. Says whether anything happened.
  bool look(Duration longest) {
    std::vector<pollfd> fds{{listener_.number(), POLLIN, 0}};
    for (const SeatState& at : seats_) fds.push_back({at.socket.number(), POLLIN, 0});  // -1 is passed over.
    const timespec limit{0, static_cast<decltype(timespec::tv_nsec)>(longest.ns)};
    if (::ppoll(fds.data(), fds.size(), &limit, nullptr) <= 0) return false;
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      if (fds[i + 1].revents != 0) hear(seats_[i]);
    }
    if (fds[0].revents != 0) greet(listener_.accept());
    return true;
  }

  void greet(SeatSocket socket) {
    const auto here = socket.receive();
    if (!here) return;  // It died at once; its starter sees that.
    SeatState* at = find(here->node);
    AREAL_CHECK(at != nullptr);
    at->socket = std::move(socket);
    at->incarnation = here->incarnation;
    at->pid = here->pid;
    at->told.clear();
    at->shown = 0;
  }

  void hear(SeatState& at) {
    const auto packet = at.socket.receive();
    if (!packet) {
      at.socket.close();
      asks_.ended(at.node);
    } else if (packet->says == SeatSays::kDone) {
      ++at.done;
      at.done_at = packet->at;
    } else {
      at.told.push_back(*packet);
      take(at, packet->slot, *proto::input_of(packet->what));
    }
  }

  void take(const SeatState& at, SlotId slot, const proto::Input& input) {
    asks_.told(at.node, slot, input);
    const auto* started = std::get_if<port::ProcessStarted>(&input);
    SeatState* child = started != nullptr ? find(started->node) : nullptr;
    if (child != nullptr && started->outcome == port::Outcome::kOk) child->announced = started->incarnation;
  }

  Instant epoch_ = host::Loop::machine_now();
  TempFolder temp_;
  host::RunFolder folder_;
  SeatListener listener_;
  std::array<SeatState, kSeats.size()> seats_;
  OpenAsks asks_;
  Instant time_{};
};

}  // namespace

std::unique_ptr<PortHarness> make_real_room() { return std::make_unique<RealRoom>(); }

}  // namespace areal::test
