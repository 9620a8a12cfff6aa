// What groups cost beside bare Gloo: goodput of a payload between two processes, and the words of an empty update.
//
// Both sides of a comparison run in the same processes and in turns, so that a busy machine slows both. Each number is
// the median of five. --quick: little of everything, to see that it runs.
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bench/arguments.h"
#include "engine/real/accel/gloo_groups.h"

namespace areal {
namespace {

using accel::BatchWish;
using accel::GroupEvent;
using port::BatchKind;
using Clock = std::chrono::steady_clock;

constexpr int kSamples = 5;
constexpr GroupId kGroup{1};

struct Sizes {
  std::size_t payload_bytes = std::size_t{64} << 20;
  int payloads = 4;  // A sample.
  int cycles = 50;
};

// One rank with both ways to the same peers.
class Rank {
 public:
  Rank(const std::string& folder, std::uint32_t own, std::uint32_t all)
      : rank(own), groups_(options_of(folder), [this](GroupEvent event) { put(std::move(event)); }) {
    gloo::rendezvous::FileStore files(folder);
    gloo::rendezvous::PrefixStore store("bare", files);
    auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
    auto made = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(own), static_cast<int>(all));
    made->connectFullMesh(store, device);
    bare = made;
    groups_.join({kGroup, own, all});
    check(take());
  }

  void barrier() const {
    gloo::BarrierOptions options(bare);
    gloo::barrier(options);
  }
  GroupEvent run(BatchWish wish) {
    wish.group = kGroup;
    wish.batch = BatchId{++batches_};
    wish.tag = batches_;
    groups_.post(std::move(wish));
    return check(take());
  }
  GroupEvent run(BatchKind kind) {
    BatchWish wish;
    wish.kind = kind;
    return run(std::move(wish));
  }

  const std::uint32_t rank;
  std::shared_ptr<gloo::Context> bare;

 private:
  static accel::GlooOptions options_of(const std::string& folder) {
    accel::GlooOptions options;
    options.folder = folder;
    options.run = "bench";
    return options;
  }
  static GroupEvent check(GroupEvent event) {
    if (event.outcome != port::Outcome::kOk) std::abort();
    return event;
  }
  void put(GroupEvent event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    wake_.notify_one();
  }
  GroupEvent take() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return !events_.empty(); });
    GroupEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<GroupEvent> events_;
  std::uint64_t batches_ = 0;
  accel::GlooGroups groups_;  // Last: it ends before the inbox does.
};

double seconds_of(const std::function<void()>& what) {
  const auto begin = Clock::now();
  what();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> samples) {
  std::ranges::stable_sort(samples);
  return samples[samples.size() / 2];
}

struct Medians {
  double bare = 0;
  double groups = 0;
  double ratio = 0;  // Of groups to bare, the median over pairs of neighbours.
};

// One turn each that is not counted, then pairs.
Medians compare(const Rank& rank, const std::function<void()>& bare, const std::function<void()>& groups) {
  std::vector<double> times[2];
  std::vector<double> ratios;
  for (int i = 0; i <= kSamples; ++i) {
    rank.barrier();
    const double with_bare = seconds_of(bare);
    rank.barrier();
    const double with_groups = seconds_of(groups);
    if (i == 0) continue;
    times[0].push_back(with_bare);
    times[1].push_back(with_groups);
    ratios.push_back(with_groups / with_bare);
  }
  return {median(times[0]), median(times[1]), median(ratios)};
}

// Rank 1 sends, rank 0 receives and measures. Memory is used again, as a real sender and receiver would.
void payload(Rank& rank, const Sizes& sizes) {
  const std::uint32_t peer = 1 - rank.rank;
  std::vector<std::byte> memory(sizes.payload_bytes, std::byte{1});
  std::vector<std::byte> bare_memory(sizes.payload_bytes, std::byte{1});
  auto buffer = rank.bare->createUnboundBuffer(bare_memory.data(), bare_memory.size());
  const auto bare_once = [&] {
    if (rank.rank == 0) {
      buffer->recv(1, 99);
      buffer->waitRecv();
    } else {
      buffer->send(0, 99);
      buffer->waitSend();
    }
  };
  const auto groups_once = [&] {
    BatchWish wish;
    wish.kind = rank.rank == 0 ? BatchKind::kReceive : BatchKind::kSend;
    std::vector<accel::PeerBytes>& list = rank.rank == 0 ? wish.receives : wish.sends;
    list.push_back({peer, std::move(memory)});
    GroupEvent event = rank.run(std::move(wish));
    memory = std::move((rank.rank == 0 ? event.received : event.sent)[0].bytes);
  };
  const auto repeated = [&](const std::function<void()>& once) {
    return [&sizes, once] {
      for (int i = 0; i < sizes.payloads; ++i) once();
    };
  };
  const Medians medians = compare(rank, repeated(bare_once), repeated(groups_once));
  if (rank.rank != 0) return;
  const double megabytes = static_cast<double>(sizes.payload_bytes) / 1e6 * sizes.payloads;
  std::printf("payloads of %.1f MB, 2 processes: bare %.0f MB/s, groups %.0f MB/s, groups / bare %.3f\n",
              static_cast<double>(sizes.payload_bytes) / 1e6, megabytes / medians.bare, megabytes / medians.groups,
              1 / medians.ratio);
}

// What an update without changes says: vote, transfer of nothing, sum, two barriers.
void control(Rank& rank, const Sizes& sizes) {
  const auto bare = [&] {
    for (int i = 0; i < sizes.cycles * 4; ++i) rank.barrier();
  };
  const auto groups = [&] {
    for (int i = 0; i < sizes.cycles; ++i) {
      for (const BatchKind kind :
           {BatchKind::kMin, BatchKind::kSend, BatchKind::kSum, BatchKind::kBarrier, BatchKind::kBarrier}) {
        rank.run(kind);
      }
    }
  };
  const Medians medians = compare(rank, bare, groups);
  if (rank.rank != 0) return;
  const double each = 1e6 / sizes.cycles;
  std::printf("empty cycle, 4 processes: four bare barriers %.0f us, five batches %.0f us, groups / bare %.2f\n",
              medians.bare * each, medians.groups * each, medians.ratio);
}

// Runs `what` as rank 0 here and as the others in children, made while this process has no threads.
bool run_as(std::uint32_t world, const std::function<void(Rank&)>& what) {
  std::string folder = (std::filesystem::temp_directory_path() / "bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return false;
  std::vector<pid_t> children;
  for (std::uint32_t own = 1; own < world; ++own) {
    const pid_t child = fork();
    if (child == 0) {
      Rank rank(folder, own, world);
      what(rank);
      rank.barrier();
      _exit(0);
    }
    children.push_back(child);
  }
  {
    Rank rank(folder, 0, world);
    what(rank);
    rank.barrier();
  }
  bool all_well = true;
  for (const pid_t child : children) {
    int status = 0;
    all_well = waitpid(child, &status, 0) == child && status == 0 && all_well;
  }
  std::filesystem::remove_all(folder);
  return all_well;
}

}  // namespace
}  // namespace areal

int main(int count, char** arguments) {
  areal::bench::Arguments wishes("transport_bench", "Payload and votes between processes of this machine, over Gloo.");
  wishes.flag("quick", "little of everything, to see that it runs");
  if (const auto status = wishes.parse(count, arguments)) return *status;
  areal::Sizes sizes;
  if (wishes.has("quick")) sizes = {std::size_t{1} << 20, 1, 3};
  bool all_well = areal::run_as(2, [&](areal::Rank& rank) { areal::payload(rank, sizes); });
  all_well = areal::run_as(4, [&](areal::Rank& rank) { areal::control(rank, sizes); }) && all_well;
  return all_well ? 0 : 1;
}
