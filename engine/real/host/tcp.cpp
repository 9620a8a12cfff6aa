#include "engine/real/host/tcp.h"

#include <netinet/tcp.h>

#include <array>
#include <asio.hpp>
#include <utility>

#include "engine/base/check.h"

namespace areal::host {
namespace {

using Tcp = asio::ip::tcp;

// What was sent and not acknowledged for this long means that the peer's machine is gone.
constexpr int kUserTimeoutMs = 10'000;
// After a failed accept, most likely for want of descriptors.
constexpr Duration kAcceptPause = 50_ms;

std::string text_of(const Tcp::socket& socket) {
  asio::error_code error;
  const Tcp::endpoint endpoint = socket.remote_endpoint(error);
  if (error) return {};
  const std::string address = endpoint.address().to_string(error);
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

}  // namespace

struct TcpStream::Impl : std::enable_shared_from_this<TcpStream::Impl> {
  explicit Impl(Tcp::socket from) : socket(std::move(from)) {}

  void configure();
  void read();
  void end(const asio::error_code& error);
  void close();

  Tcp::socket socket;
  TcpHandlers handlers;  // Kept after close(): one of them may be under way.
  std::array<std::uint8_t, 16 * 1024> buffer{};
  std::vector<std::uint8_t> writing;
  bool is_writing = false;
  bool is_closed = false;
  std::string remote;
};

void TcpStream::Impl::configure() {
  asio::error_code ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  socket.set_option(UserTimeout(kUserTimeoutMs), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  socket.non_blocking(true, ignored);  // So that a last word does not wait either.
  remote = text_of(socket);
  if (remote.empty()) remote = "?";  // Gone already, which the first read tells.
}

void TcpStream::Impl::read() {
  socket.async_read_some(asio::buffer(buffer),
                         [self = shared_from_this()](const asio::error_code& error, std::size_t size) {
                           if (self->is_closed) return;
                           if (error) {
                             self->end(error);
                             return;
                           }
                           self->handlers.on_bytes(std::span(self->buffer).first(size));
                           if (!self->is_closed) self->read();
                         });
}

void TcpStream::Impl::end(const asio::error_code& error) {
  if (is_closed) return;
  close();
  handlers.on_end(error.message());
}

void TcpStream::Impl::close() {
  is_closed = true;
  asio::error_code ignored;
  socket.shutdown(Tcp::socket::shutdown_both, ignored);
  socket.close(ignored);
}

TcpStream::TcpStream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
TcpStream::~TcpStream() { close(); }

std::unique_ptr<TcpStream> TcpStream::connect(Loop& loop, const std::string& address, std::uint16_t port,
                                              TcpHandlers handlers) {
  auto impl = std::make_shared<Impl>(Tcp::socket(loop.context()));
  impl->handlers = std::move(handlers);
  asio::error_code bad_address;
  const asio::ip::address parsed = asio::ip::make_address(address, bad_address);
  const auto on_connect = [impl](const asio::error_code& error) {
    if (impl->is_closed) return;
    if (error) {
      impl->end(error);
      return;
    }
    impl->configure();
    impl->read();
    impl->handlers.on_connected();
  };
  if (bad_address) {
    asio::post(loop.context(), [on_connect, bad_address] { on_connect(bad_address); });
  } else {
    impl->socket.async_connect(Tcp::endpoint(parsed, port), on_connect);
  }
  return std::unique_ptr<TcpStream>(new TcpStream(std::move(impl)));
}

void TcpStream::start(TcpHandlers handlers) {
  impl_->handlers = std::move(handlers);
  impl_->read();
}

void TcpStream::write(std::vector<std::uint8_t> bytes) {
  AREAL_CHECK(!impl_->is_writing);
  AREAL_CHECK(!impl_->is_closed);
  impl_->is_writing = true;
  impl_->writing = std::move(bytes);
  asio::async_write(impl_->socket, asio::buffer(impl_->writing),
                    [self = impl_](const asio::error_code& error, std::size_t /*size*/) {
                      self->is_writing = false;
                      if (self->is_closed) return;
                      if (error) {
                        self->end(error);
                        return;
                      }
                      self->handlers.on_written();
                    });
}

bool TcpStream::is_writing() const { return impl_->is_writing; }

void TcpStream::close_saying(std::span<const std::uint8_t> bytes) {
  asio::error_code ignored;
  // In the middle of another write it would be noise.
  if (!impl_->is_closed && !impl_->is_writing && !bytes.empty()) {
    impl_->socket.write_some(asio::buffer(bytes.data(), bytes.size()), ignored);
  }
  close();
}

void TcpStream::close() {
  if (!impl_->is_closed) impl_->close();
}

const std::string& TcpStream::remote() const { return impl_->remote; }

struct TcpListener::Impl : std::enable_shared_from_this<TcpListener::Impl> {
  explicit Impl(Loop& from) : loop(from), acceptor(from.context()) {}
  void accept();

  Loop& loop;
  Tcp::acceptor acceptor;
  std::function<void(std::unique_ptr<TcpStream>)> on_accept;
  LoopTimer pause{};
  std::uint16_t port = 0;
  bool is_closed = false;
};

void TcpListener::Impl::accept() {
  acceptor.async_accept([self = shared_from_this()](const asio::error_code& error, Tcp::socket socket) {
    if (self->is_closed) return;
    if (error) {
      self->pause = self->loop.arm(kAcceptPause, [self] { self->accept(); });
      return;
    }
    auto impl = std::make_shared<TcpStream::Impl>(std::move(socket));
    impl->configure();
    self->on_accept(std::unique_ptr<TcpStream>(new TcpStream(std::move(impl))));
    if (!self->is_closed) self->accept();
  });
}

TcpListener::TcpListener(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

TcpListener::~TcpListener() {
  impl_->is_closed = true;
  impl_->loop.cancel(impl_->pause);
  asio::error_code ignored;
  impl_->acceptor.close(ignored);
}

Result<std::unique_ptr<TcpListener>> TcpListener::open(Loop& loop, const std::string& address, std::uint16_t port,
                                                       std::function<void(std::unique_ptr<TcpStream>)> on_accept) {
  auto impl = std::make_shared<Impl>(loop);
  impl->on_accept = std::move(on_accept);
  asio::error_code error;
  const Tcp::endpoint endpoint(asio::ip::make_address(address, error), port);
  if (!error) impl->acceptor.open(endpoint.protocol(), error);
  if (!error) impl->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) impl->acceptor.bind(endpoint, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) impl->port = impl->acceptor.local_endpoint(error).port();
  if (error) return Error{Errc::kIo, address + ":" + std::to_string(port) + ": " + error.message()};
  impl->accept();
  return std::unique_ptr<TcpListener>(new TcpListener(std::move(impl)));
}

std::uint16_t TcpListener::port() const { return impl_->port; }

}  // namespace areal::host
