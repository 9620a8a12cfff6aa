#include "engine/real/process_ports.h"

#include <fmt/core.h>

#include <utility>

#include "engine/real/gloo_backend.h"
#include "engine/real/host/secret.h"

namespace areal::real {

Result<std::unique_ptr<ProcessPorts>> ProcessPorts::open(const ProcessPlace& place, const ProcessParts& parts) {
  std::unique_ptr<ProcessPorts> made(new ProcessPorts());
  auto store = host::FileStore::open(place.folder / "store");
  if (!store) return std::move(store).error();
  made->store_ = std::make_unique<host::FileStore>(std::move(*store));
  made->children_ = std::make_unique<ChildProcesses>(*parts.loop, *parts.room, place.folder, place.paper.seed);
  made->make_ports(place, parts);
  AREAL_TRY(made->connect(place, parts));
  return made;
}

ProcessPorts::~ProcessPorts() = default;

void ProcessPorts::make_ports(const ProcessPlace& place, const ProcessParts& parts) {
  host::RealPortsParts ports;
  ports.loop = parts.loop;
  ports.room = parts.room;
  ports.node = parts.node;
  ports.sink = parts.sink;
  ports.store = store_.get();
  ports.faults = parts.faults;
  ports.processes = children_.get();
  host::RealComputeOptions compute;
  compute.room = parts.room;
  compute.node = place.node;
  compute.seed = place.paper.seed;
  compute.checkpoints = place.folder / "checkpoints";
  ports_ = std::make_unique<host::RealPorts>(ports, std::move(compute));
  groups_ = gloo_backend({(place.folder / "rendezvous").string(), fmt::format("run{:x}", place.paper.run),
                          place.paper.address})([this, loop = parts.loop](host::GroupNews news) {
    loop->post([this, news = std::move(news)]() mutable { ports_->take_news(std::move(news)); });
  });
  ports_->set_groups(groups_.get());
}

Status ProcessPorts::connect(const ProcessPlace& place, const ProcessParts& parts) {
  auto secret = host::read_secret(secret_file(place.folder).string());
  if (!secret) return secret.error();
  book_ = std::make_unique<host::RunDirectory>(place.folder.string());
  host::LinksOptions links;
  links.self = {place.node, place.incarnation};
  links.run = place.paper.run;
  links.address = place.paper.address;
  links.port = place.port;
  host::LinkHandlers handlers;
  handlers.on_message = [this](const host::Identity& from, std::span<const std::uint8_t> bytes) {
    return ports_->take_message(from, bytes);
  };
  handlers.on_report = [name = parts.node->name()](const host::LinkReport& report) {
    fmt::print(stderr, "areal-node: {}: refused {} from {}\n", name, to_text(report.reason), report.remote);
  };
  auto opened = host::Links::open(*parts.loop, *book_, *secret, links, std::move(handlers));
  if (!opened) return opened.error();
  links_ = std::move(*opened);
  ports_->set_links(links_.get());
  return book_->publish(place.node, {place.paper.address, links_->port(), place.incarnation});
}

}  // namespace areal::real
