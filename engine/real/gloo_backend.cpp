#include "engine/real/gloo_backend.h"

#include <utility>

#include "engine/real/accel/gloo_groups.h"

namespace areal::real {
namespace {

std::vector<accel::PeerBytes> to_accel(std::vector<node::PeerPayload> peers) {
  std::vector<accel::PeerBytes> bytes;
  bytes.reserve(peers.size());
  for (node::PeerPayload& peer : peers) bytes.push_back({peer.rank, std::move(peer.bytes)});
  return bytes;
}

std::vector<node::PeerPayload> from_accel(std::vector<accel::PeerBytes> peers) {
  std::vector<node::PeerPayload> payload;
  payload.reserve(peers.size());
  for (accel::PeerBytes& peer : peers) payload.push_back({peer.rank, std::move(peer.bytes)});
  return payload;
}

host::GroupNews news_of(accel::GroupEvent event) {
  using What = accel::GroupEvent::What;
  host::GroupNews news;
  if (event.what == What::kJoined) news.what = host::GroupNews::What::kJoined;
  if (event.what == What::kDone) news.what = host::GroupNews::What::kDone;
  if (event.what == What::kAborted) news.what = host::GroupNews::What::kAborted;
  news.group = event.group;
  news.batch = event.batch;
  news.outcome = event.outcome;
  news.peer_rank = event.peer_rank;
  news.value = event.value;
  news.count = event.count;
  news.payload.receives = from_accel(std::move(event.received));
  news.payload.sends = from_accel(std::move(event.sent));
  news.payload.sums = std::move(event.sums);
  news.payload.statuses = std::move(event.statuses);
  return news;
}

class GlooBackend final : public host::GroupBackend {
 public:
  GlooBackend(const GlooPlace& place, std::function<void(host::GroupNews)> deliver)
      : groups_(options_of(place),
                [deliver = std::move(deliver)](accel::GroupEvent event) { deliver(news_of(std::move(event))); }) {}

  void join(GroupId group, std::uint32_t rank, std::uint32_t world) override { groups_.join({group, rank, world}); }
  void post(const port::PostBatch& batch, node::BatchPayload payload) override {
    accel::BatchWish wish;
    wish.group = batch.group;
    wish.batch = batch.batch;
    wish.kind = batch.kind;
    wish.tag = batch.tag;
    wish.value = batch.value;
    wish.count = batch.count;
    wish.sends = to_accel(std::move(payload.sends));
    wish.receives = to_accel(std::move(payload.receives));
    wish.sums = std::move(payload.sums);
    wish.statuses = std::move(payload.statuses);
    groups_.post(std::move(wish));
  }
  void abort(GroupId group) override { groups_.abort(group); }
  void leave(GroupId group) override { groups_.leave(group); }

 private:
  static accel::GlooOptions options_of(const GlooPlace& place) {
    accel::GlooOptions options;
    options.folder = place.folder;
    options.run = place.run;
    options.hostname = place.address;
    return options;
  }

  accel::GlooGroups groups_;
};

}  // namespace

host::GroupBackendMaker gloo_backend(GlooPlace place) {
  return
      [place = std::move(place)](std::function<void(host::GroupNews)> deliver) -> std::unique_ptr<host::GroupBackend> {
        return std::make_unique<GlooBackend>(place, std::move(deliver));
      };
}

}  // namespace areal::real
