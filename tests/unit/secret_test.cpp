// Where a run's secret may come from.
#include "engine/real/host/secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace areal::host {
namespace {

class SecretFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "areal_secret_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/secret";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_, std::ios::trunc) << text;
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  [[nodiscard]] std::string read() const {
    const auto secret = read_secret(path_);
    return secret ? std::string(secret->bytes().begin(), secret->bytes().end()) : "no: " + secret.error().detail;
  }

  std::string directory_;
  std::string path_;
};

TEST_F(SecretFile, IsReadWithoutItsLineEnd) {
  write("0123456789abcdef\r\n");
  EXPECT_EQ(read(), "0123456789abcdef");
}

TEST_F(SecretFile, OthersMustHaveNoRights) {
  for (const mode_t mode : {0640U, 0604U, 0620U, 0601U, 0644U}) {
    write("0123456789abcdef", mode);
    EXPECT_EQ(read(), "no: " + path_ + ": others may use it; chmod 600 it and make a new secret") << mode;
  }
  write("0123456789abcdef", 0400);
  EXPECT_EQ(read(), "0123456789abcdef");
}

TEST_F(SecretFile, HasABoundedLength) {
  const std::string complaint = "no: " + path_ + ": a secret has 16 to 4096 bytes";
  write("0123456789abcde\n");
  EXPECT_EQ(read(), complaint);
  std::string longest(kMaxSecretBytes, 'a');
  longest += '\n';
  write(longest);
  EXPECT_EQ(read().size(), kMaxSecretBytes);
  write(std::string(kMaxSecretBytes + 1, 'a'));
  EXPECT_EQ(read(), complaint);
}

TEST_F(SecretFile, MissingPipeAndFolderAreRefused) {
  EXPECT_FALSE(read_secret(path_).has_value());
  EXPECT_FALSE(read_secret(directory_).has_value());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(read(), "no: " + path_ + ": a secret is a plain file");
}

TEST_F(SecretFile, IsMadeOnceAndForItsOwnerOnly) {
  ASSERT_TRUE(make_secret_file(path_).has_value());
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(read().size(), 64U);
  EXPECT_FALSE(make_secret_file(path_).has_value());
}

TEST(SecretVariable, IsReadWhenThereIsNoFile) {
  ASSERT_EQ(::setenv("AREAL_TEST_SECRET", "0123456789abcdef", 1), 0);
  EXPECT_TRUE(read_secret("", "AREAL_TEST_SECRET").has_value());
  ASSERT_EQ(::unsetenv("AREAL_TEST_SECRET"), 0);
  EXPECT_FALSE(read_secret("", "AREAL_TEST_SECRET").has_value());
}

TEST(RandomNonce, IsNeverTheSame) {
  const auto first = random_nonce();
  const auto second = random_nonce();
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(*first, *second);
}

}  // namespace
}  // namespace areal::host
