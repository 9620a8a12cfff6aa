#include "tests/contract/seat_program.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>

#include "engine/base/check.h"
#include "engine/config/scenario_yaml.h"
#include "engine/node/effect_runner.h"
#include "engine/node/room_plan.h"
#include "engine/real/process_ports.h"
#include "tests/contract/listener.h"
#include "tests/contract/seat_wire.h"

namespace areal::test {
namespace {

// So long a later process of a node does nothing at first: who is told too early that it runs shows.
constexpr std::chrono::milliseconds kWakes{50};

struct SeatOptions {
  std::filesystem::path folder;
  std::string node;
  Incarnation incarnation = 1;
  std::uint16_t port = 0;
};

SeatOptions parse(int argc, char** argv) {
  SeatOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::string value = argv[i + 1];
    if (option == "--run") options.folder = value;
    if (option == "--node") options.node = value;
    if (option == "--incarnation") options.incarnation = static_cast<Incarnation>(std::stoul(value));
    if (option == "--port") options.port = static_cast<std::uint16_t>(std::stoul(value));
  }
  return options;
}

// Tells the harness of every input, in the moment before the protocol is told of it.
class SeatSink final : public port::EventSink {
 public:
  explicit SeatSink(const SeatSocket& socket) : socket_(socket) {}
  void set_within_call(bool within) { within_call_ = within; }
  void on_event(const port::TraceEvent& event) override {
    if (event.what != port::TraceWhat::kInput) return;
    SeatPacket packet{.says = SeatSays::kTold, .slot = event.slot, .at = event.at, .what = {event.record, event.body}};
    packet.within = within_call_;
    (void)socket_.send(packet);
  }

 private:
  const SeatSocket& socket_;
  bool within_call_ = false;
};

// On the loop.
void carry_out(const SeatPacket& order, host::RealPorts& ports, SeatSink& sink, const SeatSocket& socket) {
  const SeatPacket done{.says = SeatSays::kDone, .at = ports.clock().now()};
  if (order.what.record.kind != 0) {
    const auto effect = proto::effect_of(order.what);
    AREAL_CHECK(effect.has_value());
    sink.set_within_call(true);
    ports.begin_effect({ports.next_seq(), 0});
    node::run_effect(order.slot, *effect, ports);
    sink.set_within_call(false);
  }
  (void)socket.send(done);
}

// On a thread of its own, which lasts as long as the process.
void take_orders(const SeatSocket& socket, host::Loop& loop, host::RealPorts& ports, SeatSink& sink) {
  while (const auto order = socket.receive()) {
    loop.post([order = *order, &ports, &sink, &socket] { carry_out(order, ports, sink, socket); });
  }
  ::_exit(0);
}

}  // namespace

std::filesystem::path seats_of(const std::filesystem::path& folder) { return folder / "seats"; }

int run_seat(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const SeatOptions options = parse(argc, argv);
  if (options.incarnation > 1) std::this_thread::sleep_for(kWakes);
  auto paper = real::read_paper(options.folder);
  AREAL_CHECK(paper.has_value());
  const auto read = config::read_scenario_file(real::scenario_file(options.folder).string());
  AREAL_CHECK(read.scenario.has_value());
  auto room = node::plan_room(*read.scenario, {});
  AREAL_CHECK(room.has_value());
  const node::RoomNode* place = room->find(options.node);
  AREAL_CHECK(place != nullptr);

  const SeatSocket socket = SeatSocket::connect(seats_of(options.folder));
  AREAL_CHECK(socket.is_open());
  SeatSink sink(socket);
  auto loop = host::Loop::create(paper->epoch);
  AREAL_CHECK(loop.has_value());
  node::Node node(place->id, place->name, two_listeners());
  auto process = real::ProcessPorts::open({options.folder, *paper, place->id, options.incarnation, options.port},
                                          {loop->get(), &*room, &node, &sink, nullptr});
  AREAL_CHECK(process.has_value());
  host::RealPorts& ports = (*process)->ports();
  AREAL_CHECK(
      socket.send({.says = SeatSays::kHere, .node = place->id, .incarnation = options.incarnation, .pid = ::getpid()}));
  ports.start(options.incarnation, options.port, paper->seed);
  std::thread([&] { take_orders(socket, **loop, ports, sink); }).detach();
  (*loop)->run();
  return 0;
}

}  // namespace areal::test
