// Input: 'r' and a TFRecord file, or another byte and the data of records, each with its length in a byte before it,
// which get right checksums.
#include <algorithm>

#include "dataflow/input/formats/image_records.h"
#include "dataflow/input/formats/records/crc32c.h"
#include "tests/fuzz/input_directory.h"
#include "tests/fuzz/refused.h"

namespace {

using namespace arbalest;

void append(std::vector<std::uint8_t>& file, std::span<const std::uint8_t> bytes) {
  file.insert(file.end(), bytes.begin(), bytes.end());
}

template <typename Number>
void append_number(std::vector<std::uint8_t>& file, Number number) {
  append(file, std::span(reinterpret_cast<const std::uint8_t*>(&number), sizeof(number)));
}

std::vector<std::uint8_t> framed(std::span<const std::uint8_t> records) {
  std::vector<std::uint8_t> file;
  while (!records.empty()) {
    const std::size_t bytes = std::min<std::size_t>(records[0], records.size() - 1);
    const std::span<const std::uint8_t> data = records.subspan(1, bytes);
    append_number(file, std::uint64_t{bytes});
    append_number(file, dataflow::masked_crc32c(std::span(file).last(sizeof(std::uint64_t))));
    append(file, data);
    append_number(file, dataflow::masked_crc32c(data));
    records = records.subspan(1 + bytes);
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputDirectory directory;
  static engine::host::Pool pool(1);
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  if (data[0] == 'r') {
    directory.write("train", rest);
  } else {
    directory.write("train", framed(rest));
  }
  for (const dataflow::OnUnreadable on_unreadable : {dataflow::OnUnreadable::kStop, dataflow::OnUnreadable::kSkip}) {
    fuzz::is_refused({engine::ErrorKind::kData}, [&] {
      const auto examples = dataflow::open_image_records({.directory = directory.path(),
                                                          .pattern = "train",
                                                          .first_label = 1,
                                                          .classes = 1000,
                                                          .on_unreadable = on_unreadable},
                                                         pool);
      for (std::int64_t i = 0; i < examples->size(); ++i) {
        fuzz::is_refused({engine::ErrorKind::kData}, [&] { examples->read(i); });
      }
    });
  }
  return 0;
}
