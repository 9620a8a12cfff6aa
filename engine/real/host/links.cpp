#include "engine/real/host/links.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/real/host/send_queue.h"
#include "engine/real/host/tcp.h"

namespace areal::host {
namespace {

using ConnectionId = std::uint64_t;  // 0: none.

// How many bytes are sealed for one write.
constexpr std::size_t kBatchBytes = std::size_t{64} * 1024;

struct Connection {
  ConnectionId id = 0;
  bool is_inbound = false;
  std::unique_ptr<TcpStream> stream;
  Channel channel;
  std::vector<std::uint8_t> out;  // Waits for the write under way.
  LoopTimer deadline{};           // Of the handshake; later of the write under way.
  Instant opened_at{};
};

// The way to one node.
struct Route {
  SendQueue queue;
  ConnectionId connection = 0;
  LoopTimer retry{};
  Duration pause{};
};

}  // namespace

struct Links::Impl {
  Impl(Loop& from, AddressBook& with, const Secret& secret, LinksOptions chosen, LinkHandlers told)
      : loop(from), book(with), key(secret.bytes()), options(std::move(chosen)), handlers(std::move(told)) {}
  ~Impl();

  void accept(std::unique_ptr<TcpStream> stream);
  void connect(NodeId node);
  void retry_later(NodeId node, Route& route);
  std::optional<Connection> make_connection(std::optional<Identity> called);
  [[nodiscard]] TcpHandlers handlers_of(ConnectionId id);

  void take_bytes(ConnectionId id, std::span<const std::uint8_t> bytes);
  void opened(Connection& connection);
  void take_message(Connection& connection);
  void send_to_self(std::vector<std::uint8_t> bytes);
  void pump(Connection& connection);
  void fill(Connection& connection);
  void expire(NodeId node, Route& route);

  // Closes for a reason that is counted and reported, with `connection.out` as the last word.
  void refuse(Connection& connection, Refusal reason);
  // Closes; a route that lost its connection tries again if something waits.
  void close(Connection& connection);
  void evict_strangers();
  void report(const LinkReport& report, std::uint64_t times = 1);

  [[nodiscard]] Connection* find(ConnectionId id);
  [[nodiscard]] Route& route_to(NodeId node);
  [[nodiscard]] std::size_t count_strangers() const;
  // 0: not known.
  [[nodiscard]] Incarnation present(NodeId node) {
    const std::optional<PeerAddress> address = book.find(node);
    return address ? address->incarnation : 0;
  }

  Loop& loop;
  AddressBook& book;
  MacKey key;
  LinksOptions options;
  LinkHandlers handlers;
  std::unique_ptr<TcpListener> listener;
  ConnectionId last_id = 0;
  std::map<ConnectionId, std::unique_ptr<Connection>> connections;
  // Closed, but perhaps under way in a handler; a loop event of their own frees them.
  std::vector<std::unique_ptr<Connection>> closed;
  std::map<NodeId, Route> routes;
  std::map<NodeId, ConnectionId> inbound;      // Proved ones.
  std::map<NodeId, Incarnation> incarnations;  // The latest that proved itself.
  LinkCounts counts;
  std::int64_t report_second = 0;
  std::uint32_t reports = 0;  // In that second.
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

Links::Impl::~Impl() {
  for (auto& [id, connection] : connections) loop.cancel(connection->deadline);
  for (auto& [node, route] : routes) loop.cancel(route.retry);
}

Connection* Links::Impl::find(ConnectionId id) {
  const auto found = connections.find(id);
  return found == connections.end() ? nullptr : found->second.get();
}

Route& Links::Impl::route_to(NodeId node) {
  const SendQueue::Limits limits{options.queue_messages, options.queue_bytes, options.message_age};
  return routes.try_emplace(node, Route{SendQueue(limits), 0, {}, options.pause_first}).first->second;
}

std::size_t Links::Impl::count_strangers() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      connections, [](const auto& entry) { return entry.second->is_inbound && !entry.second->channel.is_open(); }));
}

void Links::Impl::report(const LinkReport& report, std::uint64_t times) {
  if (times == 0) return;
  counts.refused[static_cast<std::size_t>(report.reason)] += times;
  const std::int64_t second = loop.now().ns / Duration{1_s}.ns;
  if (second != report_second) reports = 0;
  report_second = second;
  if (reports++ < options.reports_per_second) handlers.on_report(report);
}

std::optional<Connection> Links::Impl::make_connection(std::optional<Identity> called) {
  const Result<Nonce> nonce = random_nonce();
  if (!nonce) return std::nullopt;
  const HandshakeSetup setup{.run = options.run, .self = options.self, .called = called, .nonce = *nonce};
  Connection connection{
      .id = ++last_id, .is_inbound = !called, .stream = nullptr, .channel = Channel(setup, key), .out = {}};
  const ConnectionId id = connection.id;
  connection.deadline = loop.arm(options.handshake_deadline, [this, id] {
    if (Connection* late = find(id)) refuse(*late, Refusal::kHandshakeTimeout);
  });
  return connection;
}

TcpHandlers Links::Impl::handlers_of(ConnectionId id) {
  const auto with = [this, id](auto act) {
    return [this, id, act](auto&&... arguments) {
      if (Connection* connection = find(id)) act(*connection, arguments...);
    };
  };
  return {.on_connected = with([this](Connection& c) { pump(c); }),
          .on_bytes = [this, id](std::span<const std::uint8_t> bytes) { take_bytes(id, bytes); },
          .on_written = with([this](Connection& c) {
            if (c.channel.is_open()) loop.cancel(c.deadline);
            pump(c);
          }),
          .on_end = with([this](Connection& c, const std::string& /*reason*/) {
            if (c.channel.is_open()) {
              close(c);
            } else {
              refuse(c, c.stream->remote().empty() ? Refusal::kUnreachable : Refusal::kClosedEarly);
            }
          })};
}

void Links::Impl::accept(std::unique_ptr<TcpStream> stream) {
  std::optional<Connection> made = make_connection(std::nullopt);
  if (!made) return;
  made->stream = std::move(stream);
  const ConnectionId id = made->id;
  Connection& connection = *connections.emplace(id, std::make_unique<Connection>(std::move(*made))).first->second;
  connection.stream->start(handlers_of(id));
  evict_strangers();
}

// Whoever proves itself does so within moments, so the oldest stranger is the one to suspect.
void Links::Impl::evict_strangers() {
  for (std::size_t left = count_strangers(); left > options.strangers; --left) {
    const auto oldest = std::ranges::find_if(
        connections, [](const auto& entry) { return entry.second->is_inbound && !entry.second->channel.is_open(); });
    refuse(*oldest->second, Refusal::kTooManyStrangers);
  }
}

void Links::Impl::connect(NodeId node) {
  Route& route = route_to(node);
  if (route.connection != 0 || route.retry.number != 0) return;
  const std::optional<PeerAddress> address = book.find(node);
  const Identity called{node, address ? address->incarnation : 0};
  std::optional<Connection> made = address ? make_connection(called) : std::nullopt;
  if (!address || !made) {
    retry_later(node, route);
    report({.reason = Refusal::kPeerUnknown, .peer = {node, 0}, .remote = {}});
    return;
  }
  report({.reason = Refusal::kPeerReplaced, .peer = called, .remote = {}}, route.queue.found(called.incarnation));
  route.connection = made->id;
  made->channel.start(made->out);
  made->stream = TcpStream::connect(loop, address->address, address->port, handlers_of(made->id));
  connections.emplace(made->id, std::make_unique<Connection>(std::move(*made)));
}

void Links::Impl::expire(NodeId node, Route& route) {
  report({.reason = Refusal::kExpired, .peer = {node, 0}, .remote = {}}, route.queue.expire(loop.now()));
}

void Links::Impl::retry_later(NodeId node, Route& route) {
  route.retry = loop.arm(route.pause, [this, node] {
    Route& again = route_to(node);
    again.retry = {};
    expire(node, again);
    if (!again.queue.is_empty()) connect(node);
  });
  route.pause = std::min(route.pause * 2, options.pause_longest);
}

void Links::Impl::take_bytes(ConnectionId id, std::span<const std::uint8_t> bytes) {
  // A handler may close this connection; then find() no longer knows it, but its memory is still there.
  while (!bytes.empty()) {
    Connection* connection = find(id);
    if (connection == nullptr) return;
    switch (connection->channel.feed(bytes, connection->out)) {
      case ChannelEvent::kNeedsMore:
        pump(*connection);
        break;
      case ChannelEvent::kOpened:
        opened(*connection);
        break;
      case ChannelEvent::kMessage:
        take_message(*connection);
        break;
      case ChannelEvent::kRefused:
        refuse(*connection, connection->channel.refusal());
        return;
    }
  }
}

void Links::Impl::opened(Connection& connection) {
  const Identity peer = connection.channel.peer();
  if (connection.is_inbound) {
    const auto known = incarnations.find(peer.node);
    const bool is_too_many = known == incarnations.end() && incarnations.size() >= options.peers;
    const bool is_stale = known != incarnations.end() && peer.incarnation < known->second;
    if (is_too_many || is_stale) {
      const Refusal reason = is_stale ? Refusal::kStaleIncarnation : Refusal::kTooManyPeers;
      connection.channel.append_reason(reason, connection.out);
      refuse(connection, reason);
      return;
    }
    incarnations[peer.node] = peer.incarnation;
    ConnectionId& current = inbound[peer.node];
    if (Connection* old = find(std::exchange(current, connection.id))) close(*old);
  }
  loop.cancel(connection.deadline);
  connection.opened_at = loop.now();
  ++counts.opened;
  pump(connection);
}

void Links::Impl::take_message(Connection& connection) {
  const Identity from = connection.channel.peer();
  if (handlers.on_message(from, connection.channel.message())) {
    ++counts.received;
    return;
  }
  report({.reason = Refusal::kBadPayload,
          .peer = from,
          .is_inbound = connection.is_inbound,
          .remote = connection.stream->remote()});
}

void Links::Impl::send_to_self(std::vector<std::uint8_t> bytes) {
  loop.post([this, still = std::weak_ptr(alive), bytes = std::move(bytes)] {
    if (still.expired()) return;
    ++counts.sent;
    if (handlers.on_message(options.self, bytes)) {
      ++counts.received;
    } else {
      report({.reason = Refusal::kBadPayload, .peer = options.self, .remote = {}});
    }
  });
}

// Seals what waits, up to a batch. Sequence and tag come only here, so dropping from the queue leaves no gap.
void Links::Impl::fill(Connection& connection) {
  const NodeId node = connection.channel.peer().node;
  Route& route = route_to(node);
  expire(node, route);
  while (connection.out.size() < kBatchBytes) {
    const auto message = route.queue.pop();
    if (!message) return;
    connection.channel.seal(*message, connection.out);
    ++counts.sent;
  }
}

void Links::Impl::pump(Connection& connection) {
  if (connection.stream->remote().empty() || connection.stream->is_writing()) return;
  const bool is_open = connection.channel.is_open();
  if (is_open && !connection.is_inbound) fill(connection);
  if (connection.out.empty()) return;
  if (is_open) {
    connection.deadline = loop.arm(options.stall_deadline, [this, id = connection.id] {
      if (Connection* slow = find(id)) refuse(*slow, Refusal::kStalled);
    });
  }
  connection.stream->write(std::exchange(connection.out, {}));
}

void Links::Impl::refuse(Connection& connection, Refusal reason) {
  const LinkReport told{.reason = reason,
                        .peer_reason = connection.channel.peer_reason(),
                        .peer = connection.channel.peer(),
                        .is_inbound = connection.is_inbound,
                        .remote = connection.stream->remote()};
  connection.stream->close_saying(connection.out);
  close(connection);
  report(told);
}

void Links::Impl::close(Connection& connection) {
  const auto found = connections.find(connection.id);
  if (found == connections.end()) return;
  loop.cancel(connection.deadline);
  connection.stream->close();
  if (closed.empty()) {
    loop.post([this, still = std::weak_ptr(alive)] {
      if (!still.expired()) closed.clear();
    });
  }
  closed.push_back(std::move(found->second));
  connections.erase(found);
  const NodeId node = connection.channel.peer().node;
  if (connection.is_inbound) {
    const auto proved = inbound.find(node);
    if (proved != inbound.end() && proved->second == connection.id) inbound.erase(proved);
    return;
  }
  Route& route = route_to(node);
  if (route.connection != connection.id) return;
  route.connection = 0;
  // A peer that takes connections and drops them at once is not called at full speed.
  const bool has_lasted =
      connection.opened_at != Instant{} && loop.now() - connection.opened_at > options.pause_longest;
  if (has_lasted) route.pause = options.pause_first;
  retry_later(node, route);
}

// ---- What others see ----

Links::Links(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Links::~Links() = default;

Result<std::unique_ptr<Links>> Links::open(Loop& loop, AddressBook& book, const Secret& secret,
                                           const LinksOptions& options, LinkHandlers handlers) {
  auto impl = std::make_unique<Impl>(loop, book, secret, options, std::move(handlers));
  auto listener =
      TcpListener::open(loop, options.address, options.port,
                        [to = impl.get()](std::unique_ptr<TcpStream> stream) { to->accept(std::move(stream)); });
  if (!listener) return std::move(listener).error();
  impl->listener = std::move(listener).value();
  return std::unique_ptr<Links>(new Links(std::move(impl)));
}

std::uint16_t Links::port() const { return impl_->listener->port(); }

void Links::send(NodeId to, std::vector<std::uint8_t> bytes) {
  if (bytes.size() > std::min(kMaxMessageBytes, impl_->options.queue_bytes)) {
    impl_->report({.reason = Refusal::kTooLong, .peer = {to, 0}, .remote = {}});
    return;
  }
  if (to == impl_->options.self.node) {
    impl_->send_to_self(std::move(bytes));
    return;
  }
  Route& route = impl_->route_to(to);
  Connection* connection = impl_->find(route.connection);
  const bool is_open = connection != nullptr && connection->channel.is_open();
  const Incarnation present = is_open ? connection->channel.peer().incarnation : impl_->present(to);
  impl_->report({.reason = Refusal::kQueueFull, .peer = {to, 0}, .remote = {}},
                route.queue.push(std::move(bytes), impl_->loop.now(), present));
  if (connection == nullptr) {
    impl_->connect(to);
  } else if (is_open) {
    impl_->pump(*connection);
  }
}

void Links::forget(NodeId node) {
  const auto route = impl_->routes.find(node);
  if (route != impl_->routes.end()) {
    route->second.queue.clear();
    if (Connection* connection = impl_->find(route->second.connection)) impl_->close(*connection);
    impl_->loop.cancel(route->second.retry);
    impl_->routes.erase(route);
  }
  const auto proved = impl_->inbound.find(node);
  if (proved == impl_->inbound.end()) return;
  if (Connection* connection = impl_->find(proved->second)) impl_->close(*connection);
}

const LinkCounts& Links::counts() const { return impl_->counts; }
std::size_t Links::strangers() const { return impl_->count_strangers(); }

std::size_t Links::waiting_bytes(NodeId node) const {
  const auto route = impl_->routes.find(node);
  return route == impl_->routes.end() ? 0 : route->second.queue.bytes();
}

}  // namespace areal::host
