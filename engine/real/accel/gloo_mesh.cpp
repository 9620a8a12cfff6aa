#include "engine/real/accel/gloo_mesh.h"

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

#include "engine/base/check.h"

namespace areal::accel {
namespace {

using Clock = std::chrono::steady_clock;
using gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;

// A wait of Gloo that times out closes every connection, so none may; nudges end them.
constexpr milliseconds kForever = std::chrono::hours(1'000);
constexpr milliseconds kConnectForever = std::chrono::hours(1);
constexpr milliseconds kStorePause{3};
constexpr milliseconds kGoodbyeTime{50};
// A goodbye that has begun and does not end for so long never will: its sender died amid it, and Gloo tells nobody.
constexpr milliseconds kHalfGoodbye{2'000};

constexpr std::uint64_t kSaysLeft = 1;
constexpr std::uint64_t kSaysAborted = 2;

// Gloo counts ranks in int.
int as_int(std::uint32_t rank) { return static_cast<int>(rank); }

std::string key_of(std::uint32_t rank) { return "rank-" + std::to_string(rank); }

// Whether anything has been written to `word`, which receives: no more than a hint that the receive is about to end.
// The kernel writes there, which is no access of this program that a load could race with; the thread sanitizer takes
// it for one of the thread that called recv().
__attribute__((no_sanitize("thread"))) bool has_begun(const volatile std::uint64_t& word) { return word != 0; }

}  // namespace

Mesh::Mesh(std::uint32_t rank, std::uint32_t world) : rank_(rank), world_(world), goodbyes_(world), peers_(world) {}

Mesh::~Mesh() { close(false, std::nullopt); }

void Mesh::connect(const std::shared_ptr<gloo::transport::Device>& device, RendezvousStore& store,
                   std::optional<SteadyTime> deadline) {
  begin(0, deadline);
  try {
    context_ = device->createContext(as_int(rank_), as_int(world_));
    context_->setTimeout(kConnectForever);
    for (std::uint32_t peer = 0; peer < world_; ++peer) {
      if (peer != rank_) context_->createPair(as_int(peer));
    }
  } catch (const std::exception&) {
    throw MeshFailure{port::Outcome::kFailed};
  }
  if (!store.put(key_of(rank_), own_addresses())) throw MeshFailure{port::Outcome::kRefused};
  written_ = &store;
  std::vector<std::vector<char>> addresses(world_);
  for (std::uint32_t peer = 0; peer < world_; ++peer) {
    if (peer != rank_) addresses[peer] = wait_for(store, peer);
  }
  if (store.is_closed()) throw MeshFailure{port::Outcome::kAborted};
  connect_pairs(store, addresses);
}

// Whoever waits for the others sees from its disappearance that this member gave up.
void Mesh::leave_store() {
  if (written_ != nullptr) written_->erase(key_of(rank_));
  written_ = nullptr;
}

// The world, then the address of our end of each connection.
std::vector<char> Mesh::own_addresses() const {
  std::vector<char> all(sizeof(world_));
  std::memcpy(all.data(), &world_, sizeof(world_));
  for (std::uint32_t peer = 0; peer < world_; ++peer) {
    if (peer == rank_) continue;
    const std::vector<char> one = context_->getPair(as_int(peer))->address().bytes();
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

// The address at which `peer` expects us.
std::vector<char> Mesh::wait_for(const RendezvousStore& store, std::uint32_t peer) {
  AREAL_CHECK(world_ > 1);
  std::optional<std::vector<char>> all;
  while (!(all = store.get(key_of(peer)))) {
    if (stopped_ || store.is_closed()) throw MeshFailure{port::Outcome::kAborted};
    for (std::uint32_t seen = 0; seen < peer; ++seen) {
      if (seen != rank_ && !store.has(key_of(seen))) throw MeshFailure{port::Outcome::kAborted, seen};
    }
    if (deadline_ && Clock::now() >= *deadline_) throw MeshFailure{port::Outcome::kTimedOut, peer};
    std::this_thread::sleep_for(kStorePause);
  }
  std::uint32_t world = 0;
  if (all->size() < sizeof(world)) throw MeshFailure{port::Outcome::kFailed, peer};
  std::memcpy(&world, all->data(), sizeof(world));
  const std::size_t rest = all->size() - sizeof(world);
  if (world != world_ || rest % (world_ - 1) != 0) throw MeshFailure{port::Outcome::kMismatch, peer};
  const std::size_t size = rest / (world_ - 1);
  const std::size_t place = rank_ < peer ? rank_ : rank_ - 1;
  const auto begin = all->begin() + static_cast<std::ptrdiff_t>(sizeof(world) + place * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

void Mesh::connect_pairs(const RendezvousStore& store, const std::vector<std::vector<char>>& addresses) {
  {
    const std::lock_guard lock(mutex_);
    connecting_ = &store;
  }
  std::optional<std::uint32_t> broken;
  for (std::uint32_t peer = 0; peer < world_ && !broken; ++peer) {
    if (peer == rank_) continue;
    try {
      context_->getPair(as_int(peer))->connect(addresses[peer]);
    } catch (const std::exception&) {
      broken = peer;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    connecting_ = nullptr;
    if (cut_) throw MeshFailure{*cut_};
  }
  // A process that died left its value there.
  if (broken && !store.has(key_of(*broken))) throw MeshFailure{port::Outcome::kAborted, broken};
  if (broken) throw MeshFailure{port::Outcome::kPeerGone, broken};
  connected_ = true;
  for (std::uint32_t peer = 0; peer < world_; ++peer) {
    if (peer == rank_) continue;
    peers_[peer].goodbye = buffer(goodbyes_[peer].data(), sizeof(Goodbye));
    receive(peers_[peer].goodbye, peer, kGoodbyeSlot);
  }
}

void Mesh::close(bool leaves, std::optional<std::uint32_t> blamed) {
  leave_store();
  Goodbye words{};  // Outlives the connections, as all memory that Gloo may look at.
  if (connected_) {
    words = {leaves ? kSaysLeft : kSaysAborted, batch_, blamed ? *blamed + 1U : 0U};
    std::vector<Buffer> parting(world_);
    const SteadyTime until = Clock::now() + kGoodbyeTime;
    for (std::uint32_t peer = 0; peer < world_; ++peer) {
      if (peer == rank_) continue;
      try {
        parting[peer] = context_->createUnboundBuffer(words.data(), sizeof(words));
        parting[peer]->send(as_int(peer), kGoodbyeSlot);
      } catch (const std::exception&) {
        parting[peer].reset();  // Gone before us.
      }
    }
    for (Buffer& one : parting) {
      try {
        // That a timeout closes all connections does no harm any more.
        if (one) one->waitSend(std::chrono::ceil<milliseconds>(std::max(until - Clock::now(), Clock::duration{1})));
      } catch (const std::exception&) {
        continue;
      }
    }
  }
  connected_ = false;
  for (Peer& peer : peers_) peer.goodbye.reset();
  context_.reset();
}

void Mesh::begin(std::uint64_t batch, std::optional<SteadyTime> deadline) {
  batch_ = batch;
  deadline_ = deadline;
}

Mesh::Buffer Mesh::buffer(void* data, std::size_t bytes) {
  AREAL_CHECK(connected_);
  return context_->createUnboundBuffer(data, bytes);
}

void Mesh::send(Buffer& buffer, std::uint32_t peer, std::uint64_t slot) {
  try {
    buffer->send(as_int(peer), slot);
  } catch (const std::exception&) {
    fail(peer);
  }
}

void Mesh::receive(Buffer& buffer, std::uint32_t peer, std::uint64_t slot) {
  try {
    buffer->recv(as_int(peer), slot);
  } catch (const std::exception&) {
    fail(peer);
  }
}

bool Mesh::receive_ahead(Buffer& buffer, std::uint32_t peer, std::uint64_t slot) {
  try {
    buffer->recv(as_int(peer), slot);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

void Mesh::wait(UnboundBuffer& buffer, std::uint32_t peer, bool sends) {
  for (;;) {
    bool ended = false;
    try {
      ended = wait_once(buffer, sends);
    } catch (const std::exception&) {
      fail(peer);
    }
    if (ended) return;
    check();
  }
}

// False if nudged, also if the operation ended in the same moment.
bool Mesh::wait_once(UnboundBuffer& buffer, bool sends) {
  struct Waiting {
    Mesh& mesh;
    Waiting(Mesh& owner, UnboundBuffer& buffer, bool sends) : mesh(owner) {
      const std::lock_guard lock(mesh.mutex_);
      mesh.waiting_ = &buffer;
      mesh.waiting_sends_ = sends;
    }
    ~Waiting() {
      const std::lock_guard lock(mesh.mutex_);
      mesh.waiting_ = nullptr;
    }
  };
  const Waiting waiting(*this, buffer, sends);
  if (stopped_) return false;  // Whoever stopped us nudges only who is registered.
  return sends ? buffer.waitSend(kForever) : buffer.waitRecv(kForever);
}

// Goes on unless this member was stopped, its time is up, or the batch cannot end because of a peer.
void Mesh::check() {
  if (stopped_) throw MeshFailure{port::Outcome::kAborted};
  std::optional<MeshFailure> aborted;
  std::optional<MeshFailure> gone;
  for (std::uint32_t peer = 0; peer < world_; ++peer) {
    if (peer == rank_) continue;
    look_at(peer);
    const Peer& one = peers_[peer];
    if (one.state == PeerState::kDead && !gone) gone = MeshFailure{port::Outcome::kPeerGone, peer};
    if (one.state == PeerState::kLeft && one.after < batch_ && !gone) {
      gone = MeshFailure{port::Outcome::kPeerGone, peer};
    }
    if (one.state == PeerState::kAborted && one.blamed && *one.blamed != rank_) {
      gone = MeshFailure{port::Outcome::kPeerGone, one.blamed};
    } else if (one.state == PeerState::kAborted && !aborted) {
      aborted = MeshFailure{port::Outcome::kAborted, peer};
    }
  }
  if (gone) throw *gone;
  if (aborted) throw *aborted;
  if (deadline_ && Clock::now() >= *deadline_) throw MeshFailure{port::Outcome::kTimedOut};
}

void Mesh::look_at(std::uint32_t peer) {
  Peer& one = peers_[peer];
  if (one.state != PeerState::kThere || !one.goodbye) return;
  try {
    if (!hears_goodbye(peer)) return;
  } catch (const std::exception&) {
    one.state = PeerState::kDead;
    return;
  }
  const Goodbye& words = goodbyes_[peer];
  one.state = words[0] == kSaysLeft ? PeerState::kLeft : PeerState::kAborted;
  one.after = words[1];
  if (words[2] != 0) one.blamed = static_cast<std::uint32_t>(words[2] - 1);
}

// Whether `peer` has said all of its goodbye. Throws if it never will.
bool Mesh::hears_goodbye(std::uint32_t peer) {
  UnboundBuffer& buffer = *peers_[peer].goodbye;
  if (!has_begun(goodbyes_[peer][0])) {
    // An asked-for abort makes the wait end at once, with the exception of a closed connection if there is one; but it
    // also hides a completion, which the first word shows.
    buffer.abortWaitRecv();
    return buffer.waitRecv(kForever);
  }
  const SteadyTime until = Clock::now() + kHalfGoodbye;
  while (!wait_once(buffer, false)) {
    if (stopped_) return false;
    if (Clock::now() >= until) throw std::runtime_error("half a goodbye");
  }
  return true;
}

// The connection to `peer` is closed.
void Mesh::fail(std::uint32_t peer) {
  check();
  throw MeshFailure{port::Outcome::kPeerGone, peer};
}

void Mesh::nudge() {
  const std::lock_guard lock(mutex_);
  if (waiting_ != nullptr && waiting_sends_) waiting_->abortWaitSend();
  if (waiting_ != nullptr && !waiting_sends_) waiting_->abortWaitRecv();
  if (connecting_ == nullptr || cut_ || !must_cut()) return;
  for (std::uint32_t peer = 0; peer < world_; ++peer) {
    if (peer != rank_) context_->getPair(as_int(peer))->close();
  }
}

// Whether the connections that are being made will never all be made; sets cut_ then. Nobody erases its value before
// all have connected.
bool Mesh::must_cut() {
  for (std::uint32_t peer = 0; peer < world_; ++peer) {
    if (!connecting_->has(key_of(peer))) cut_ = port::Outcome::kAborted;
  }
  if (deadline_ && Clock::now() >= *deadline_) cut_ = port::Outcome::kTimedOut;
  if (stopped_ || connecting_->is_closed()) cut_ = port::Outcome::kAborted;
  return cut_.has_value();
}

}  // namespace areal::accel
