#include "checkpoint/manifest.h"

#include <algorithm>
#include <set>
#include <span>

#include <fmt/format.h>

#include "arbalest/v1/checkpoint.pb.h"
#include "checkpoint/xxh3.h"
#include "messages/text.h"
#include "messages/text_encoding.h"
#include "options/text/issue_report.h"
#include "options/text/text_format.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr const char* kHeader =
    "# proto-file: arbalest/v1/checkpoint.proto\n# proto-message: arbalest.v1.CheckpointManifest\n\n";
constexpr std::size_t kDigits = 32;  // of XXH3-128

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_xxh3(std::string_view text) {
  return text.size() == kDigits &&
         std::ranges::all_of(text, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

std::string xxh3_of(std::string_view text) {
  Xxh3 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

std::string checksum_line(std::string_view content) { return fmt::format("checksum: \"{}\"\n", xxh3_of(content)); }

SyntaxReport parse(const SourceText& source, google::protobuf::Message& message) {
  return parse_text(source, TextOutline(source, *message.GetDescriptor()), message);
}

void throw_if_any(const SyntaxReport& syntax, const SourceText& source) {
  if (syntax.issues.empty()) return;
  IssueReport report(source);
  for (const SyntaxIssue& issue : syntax.issues) report.add(issue.position, issue.message);
  report.add_unshown(syntax.unshown);
  throw engine::Error(ErrorKind::kCheckpoint, report.to_error().what());
}

// The checksum covers the whole text: blanks and comments, too, so that nothing that was not written is accepted.
void check_sum(const std::string& text) {
  const std::size_t line_bytes = checksum_line("").size();
  if (text.size() < line_bytes) fail(ErrorKind::kCheckpoint, "it has {} bytes, so it is cut off", text.size());
  const std::string_view content = std::string_view(text).substr(0, text.size() - line_bytes);
  if (std::string_view(text).substr(content.size()) != checksum_line(content)) {
    fail(ErrorKind::kCheckpoint, "its last line is not the checksum of the text before it ('{}')", xxh3_of(content));
  }
}

ManifestEntry read_entry(const v1::CheckpointManifest::File& file) {
  if (!file.has_name() || !file.has_size() || !file.has_xxh3_128()) {
    fail(ErrorKind::kCheckpoint, "a file lacks name, size or xxh3_128");
  }
  if (!is_checkpoint_file_name(file.name())) {
    fail(ErrorKind::kCheckpoint, "'{}' is no name for a file of a checkpoint", printable(shortened(file.name())));
  }
  if (!is_xxh3(file.xxh3_128())) {
    fail(ErrorKind::kCheckpoint, "the xxh3_128 of '{}' is not {} lower-case hexadecimal digits", file.name(), kDigits);
  }
  return {file.name(), file.size(), file.xxh3_128()};
}

}  // namespace

bool is_checkpoint_file_name(std::string_view name) {
  constexpr std::size_t kMaxLength = 100;
  const auto is_allowed = [](char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= kMaxLength && (is_digit(name[0]) || is_letter(name[0])) &&
         std::ranges::all_of(name, is_allowed) && name != kManifestFile;
}

std::string print_manifest(const Manifest& manifest) {
  v1::CheckpointManifest message;
  message.set_format_version(kCheckpointFormat);
  message.set_batches(manifest.batches);
  for (const ManifestEntry& entry : manifest.files) {
    v1::CheckpointManifest::File& file = *message.add_file();
    file.set_name(entry.name);
    file.set_size(entry.size);
    file.set_xxh3_128(entry.xxh3_128);
  }
  const std::string content =
      kHeader + print_text(message, *v1::CheckpointManifest::descriptor()->FindFieldByName("file"));
  return content + checksum_line(content);
}

Manifest parse_manifest(const std::string& text) {
  check_sum(text);
  const SourceText source(kManifestFile, text);
  v1::CheckpointManifest message;
  const SyntaxReport syntax = parse(source, message);
  if (message.format_version() > kCheckpointFormat) {
    throw NewerFormat(ErrorKind::kCheckpoint,
                      fmt::format("written by a newer Arbalest (format {}; this program reads format {})",
                                  message.format_version(), kCheckpointFormat));
  }
  throw_if_any(syntax, source);
  if (message.format_version() != kCheckpointFormat) fail(ErrorKind::kCheckpoint, "it has no format_version");
  if (!message.has_batches()) fail(ErrorKind::kCheckpoint, "it has no number of batches");
  Manifest manifest{.batches = message.batches(), .files = {}};
  std::set<std::string> names;
  for (const v1::CheckpointManifest::File& file : message.file()) {
    manifest.files.push_back(read_entry(file));
    if (!names.insert(file.name()).second) fail(ErrorKind::kCheckpoint, "the file '{}' is listed twice", file.name());
  }
  return manifest;
}

void parse_checkpoint_text(const std::string& name, const std::string& text, google::protobuf::Message& message) {
  const SourceText source(name, text);
  throw_if_any(parse(source, message), source);
}

}  // namespace arbalest::jobs
