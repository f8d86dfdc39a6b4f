#include "dataflow/input/formats/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include "dataflow/input/formats/growing_vector.h"
#include "dataflow/input/formats/input_file.h"
#include "engine/base/error.h"
#include "engine/base/nearest_name.h"

namespace arbalest::dataflow {

namespace {

using engine::ErrorKind;

constexpr std::size_t kLongestField = 1 << 16;  // bytes
constexpr std::size_t kMostShown = 10;          // names in a message
constexpr const char* kRowsRemedy = "use fewer rows, or more memory";

// The field for a message: short, and without control characters.
std::string shown(std::string_view field) {
  constexpr std::size_t kLongest = 40;
  std::string text(field.substr(0, kLongest));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7F; }, '?');
  return field.size() > kLongest ? text + "..." : text;
}

// "a, b, c"; of many names, the first ones.
std::string shown_list(std::span<const std::string> names) {
  std::vector<std::string> texts;
  for (const std::string& name : names.first(std::min(names.size(), kMostShown))) texts.push_back(shown(name));
  return fmt::format("{}{}", fmt::join(texts, ", "), names.size() > kMostShown ? ", ..." : "");
}

std::string_view trimmed(std::string_view field) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = field.find_first_not_of(kBlanks);
  return first == std::string_view::npos ? "" : field.substr(first, field.find_last_not_of(kBlanks) + 1 - first);
}

// A whole number without sign; none for other texts, and for more digits than a class has.
std::optional<std::int32_t> class_number(std::string_view text) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 && text[0] != '-'
             ? std::optional(number)
             : std::nullopt;
}

// The rows of a file, one by one. Blanks around a field do not count, and neither do empty lines.
class CsvRows {
 public:
  explicit CsvRows(const std::filesystem::path& path) : file_(path) {
    constexpr std::array<std::uint8_t, 3> kByteOrderMark{0xEF, 0xBB, 0xBF};
    const bool has_mark = peek() != kEnd && std::ranges::equal(std::span(buffer_).first(3), kByteOrderMark);
    if (has_mark) next_ = kByteOrderMark.size();
    if (!next()) engine::fail(ErrorKind::kData, "{}: is empty; its first line names the columns", path.string());
  }

  // Reads the next row; false at the end of the file.
  bool next() {
    do {
      fields_.clear();
      line_ = next_line_;
      if (peek() == kEnd) return false;
      while (read_field()) {
      }
    } while (fields_.size() == 1 && fields_.front().empty());
    return true;
  }

  const std::vector<std::string>& fields() const noexcept { return fields_; }
  std::string path() const { return file_.path().string(); }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    engine::fail(ErrorKind::kData, "{}:{}: {}", path(), line_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  static constexpr int kEnd = -1;

  // The next byte, which stays there; kEnd at the end of the file.
  int peek() {
    if (next_ == filled_) {
      filled_ = file_.read_up_to(buffer_);
      next_ = 0;
      if (filled_ == 0) return kEnd;
    }
    return buffer_[next_];
  }

  void add(int c) {
    if (field_.size() == kLongestField) {
      fail("a field is longer than {} bytes; look for a quote that is not closed", kLongestField);
    }
    if (c == '\n') ++next_line_;
    field_ += static_cast<char>(c);
    ++next_;
  }

  // Returns whether the row has a further field.
  bool read_field() {
    field_.clear();
    while (peek() == ' ' || peek() == '\t') ++next_;
    const bool is_quoted = peek() == '"';
    if (is_quoted) read_quoted();
    for (int c = peek(); c != ',' && c != '\n' && c != kEnd; c = peek()) {
      if (is_quoted && c != ' ' && c != '\t' && c != '\r') {
        fail("'{}' goes on after its quotes; write a quote within quotes twice", shown(field_));
      }
      if (is_quoted) {
        ++next_;
      } else {
        add(c);
      }
    }
    const bool has_more = peek() == ',';
    if (peek() == '\n') ++next_line_;
    if (peek() != kEnd) ++next_;
    if (!is_quoted && !has_more && field_.ends_with('\r')) field_.pop_back();
    fields_.emplace_back(is_quoted ? field_ : trimmed(field_));
    return has_more;
  }

  void read_quoted() {
    ++next_;
    while (true) {
      const int c = peek();
      if (c == kEnd) fail("a quote is not closed before the end of the file");
      if (c == '"') {
        ++next_;
        if (peek() != '"') return;
      }
      add(c);
    }
  }

  InputFile file_;
  std::array<std::uint8_t, 1 << 16> buffer_{};
  std::size_t next_ = 0;
  std::size_t filled_ = 0;
  std::int64_t line_ = 1;       // of the row's beginning
  std::int64_t next_line_ = 1;  // of the next byte
  std::string field_;
  std::vector<std::string> fields_;
};

// The columns that a file's first line names.
struct Header {
  std::vector<std::string> columns;
  std::map<std::string, std::size_t> places;  // of the columns, by name
  std::size_t label = 0;                      // its place

  // All columns but the label, in the order of the file.
  std::vector<std::string> features() const {
    std::vector<std::string> names = columns;
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(label));
    return names;
  }
};

Header read_header(const CsvRows& rows, const std::string& label) {
  Header header{.columns = rows.fields(), .places = {}};
  const std::vector<std::string>& columns = header.columns;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].empty()) {
      rows.fail("column {} has no name; name it, or remove it (pandas leaves its index out with index=False)", i + 1);
    }
    if (!header.places.emplace(columns[i], i).second) {
      rows.fail("two columns are named '{}'; rename one of them", shown(columns[i]));
    }
  }
  const auto found = header.places.find(label);
  if (found == header.places.end() && columns.size() == 1) {
    rows.fail("has one column, '{}'; the first line names the columns, which are separated by commas",
              shown(columns.front()));
  }
  if (found == header.places.end()) {
    rows.fail("no column is named '{}'{}; the columns are {}; set data.csv.label to one of them", shown(label),
              engine::did_you_mean(label, columns), shown_list(columns));
  }
  header.label = found->second;
  return header;
}

// Reads the next row, which must have a field for each column.
bool read_row(CsvRows& rows, const Header& header) {
  if (!rows.next()) return false;
  if (rows.fields().size() != header.columns.size()) {
    rows.fail("has {} fields, but the first line names {} columns; put fields that hold commas in quotes",
              rows.fields().size(), header.columns.size());
  }
  return true;
}

const std::string& label_of(const CsvRows& rows, const Header& header) {
  const std::string& label = rows.fields()[header.label];
  if (label.empty()) {
    rows.fail("column '{}' is empty; write the class, or remove the row", shown(header.columns[header.label]));
  }
  return label;
}

// The training set decides these columns and classes.
struct Training {
  Header header;
  std::vector<std::string> classes;  // sorted as text; empty: the labels are numbers
};

Training read_training(const std::filesystem::path& path, const std::string& label) {
  CsvRows rows(path);
  Training training{read_header(rows, label), {}};
  std::map<std::string, int> labels;
  bool are_numbers = true;
  while (read_row(rows, training.header)) {
    const std::string& name = label_of(rows, training.header);
    if (!labels.try_emplace(name).second) continue;
    are_numbers &= class_number(name).has_value();
    constexpr std::size_t kMostClasses = 1'000'000;
    if (labels.size() > kMostClasses) {
      rows.fail("column '{}' has more than {} different labels; data.csv.label names the column of the classes",
                shown(label), kMostClasses);
    }
  }
  if (labels.empty()) engine::fail(ErrorKind::kData, "{}: has no row but the names of the columns", path.string());
  if (are_numbers) return training;
  for (const auto& [name, unused] : labels) training.classes.push_back(name);
  return training;
}

void check_fit(const Training& training, const SplitFiles& files, const std::string& label) {
  const std::string path = files.training.string();
  const std::vector<std::string> features = training.header.features();
  const std::int64_t expected = files.expected.image()[0];
  if (std::ssize(features) != expected) {
    engine::fail(ErrorKind::kData,
                 "{}:1: the number of columns beside the label '{}' is {} ({}), but the job has features: {}; set "
                 "data.csv.features: {}, or remove columns",
                 path, shown(label), features.size(), shown_list(features), expected, features.size());
  }
  const std::size_t classes = training.classes.size();
  if (classes != 0 && std::cmp_not_equal(classes, files.expected.classes())) {
    engine::fail(ErrorKind::kData,
                 "{}: the number of different labels in column '{}' is {} ({}), but the job has classes: {}; set "
                 "data.csv.classes: {}",
                 path, shown(label), classes, shown_list(training.classes), files.expected.classes(), classes);
  }
}

// Reads the rows of a file whose columns may be in another order than those of the training set.
class CsvReader {
 public:
  CsvReader(const SplitFiles& files, const Training& training, const std::string& label)
      : files_(files),
        training_(training),
        rows_(files.examples),
        header_(read_header(rows_, label)),
        limit_{files.budget, files.examples.string(), kRowsRemedy} {
    match_columns();
  }

  std::unique_ptr<FloatImages> read() {
    while (read_row(rows_, header_)) {
      make_room(numbers_, columns_.size(), limit_);
      for (const std::size_t column : columns_) numbers_.push_back(number(column));
      make_room(labels_, 1, limit_);
      labels_.push_back(label());
    }
    if (labels_.empty()) {
      engine::fail(ErrorKind::kData, "{}: has no row but the names of the columns", rows_.path());
    }
    return std::make_unique<FloatImages>(files_.name, files_.expected, files_.normalization, std::move(numbers_),
                                         std::move(labels_));
  }

 private:
  void match_columns() {
    const std::string& label = header_.columns[header_.label];
    for (const std::string& name : training_.header.features()) {
      const auto found = header_.places.find(name);
      if (found == header_.places.end()) {
        rows_.fail("column '{}' of the training set is missing{}; the columns are {}", shown(name),
                   engine::did_you_mean(name, header_.columns), shown_list(header_.columns));
      }
      columns_.push_back(found->second);
    }
    for (const std::string& name : header_.columns) {
      if (name != label && !training_.header.places.contains(name)) {
        rows_.fail("column '{}' is not in the training set; remove it", shown(name));
      }
    }
  }

  float number(std::size_t column) const {
    std::string_view text = trimmed(rows_.fields()[column]);
    const std::string& name = header_.columns[column];
    if (text.empty()) rows_.fail("column '{}' is empty; write a number, or remove the row", shown(name));
    if (text.starts_with('+')) text.remove_prefix(1);
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size() || error == std::errc::invalid_argument) {
      rows_.fail("column '{}': '{}' is no number; encode it as numbers, or remove the column", shown(name),
                 shown(text));
    }
    if (error == std::errc::result_out_of_range && is_tiny(text)) return 0.0F;
    if (error != std::errc() || !(std::abs(value) <= double{std::numeric_limits<float>::max()})) {
      rows_.fail("column '{}': '{}' is not finite as float32; correct it, or remove the row", shown(name), shown(text));
    }
    return static_cast<float>(value);
  }

  // Whether a number beyond double precision is nearly 0 and not infinite.
  static bool is_tiny(std::string_view text) {
    const std::size_t exponent = text.find_first_of("eE");
    return exponent == std::string_view::npos || text.substr(exponent + 1).starts_with('-');
  }

  std::int32_t label() const {
    const std::string& text = label_of(rows_, header_);
    const std::string& column = header_.columns[header_.label];
    if (!training_.classes.empty()) {
      const auto found = std::ranges::lower_bound(training_.classes, text);
      if (found != training_.classes.end() && *found == text) {
        return static_cast<std::int32_t>(found - training_.classes.begin());
      }
      rows_.fail("column '{}': the training set has no label '{}'{}; its labels are {}", shown(column), shown(text),
                 engine::did_you_mean(text, training_.classes), shown_list(training_.classes));
    }
    const std::optional<std::int32_t> number = class_number(text);
    if (!number) {
      rows_.fail("column '{}': label '{}' is no whole number, but those of the training set are", shown(column),
                 shown(text));
    }
    if (*number >= files_.expected.classes()) {
      rows_.fail(
          "column '{}': label {} is not in [0, {}); classes are numbered from 0, and data.csv.classes says how "
          "many there are",
          shown(column), *number, files_.expected.classes());
    }
    return *number;
  }

  const SplitFiles& files_;
  const Training& training_;
  CsvRows rows_;
  Header header_;
  GrowthLimit limit_;
  std::vector<std::size_t> columns_;  // by feature
  std::vector<float> numbers_;        // [rows, features]
  std::vector<std::int32_t> labels_;  // [rows]
};

}  // namespace

std::unique_ptr<FloatImages> load_csv(const SplitFiles& files, const std::string& label) {
  const Training training = read_training(files.training, label);
  check_fit(training, files, label);
  return CsvReader(files, training, label).read();
}

std::vector<std::string> csv_class_names(const std::filesystem::path& training, const std::string& label) {
  return read_training(training, label).classes;
}

}  // namespace arbalest::dataflow
