// Input: a job file, which is parsed and checked, its model's shapes included.
#include "options/loading/load_job.h"
#include "tests/fuzz/refused.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace arbalest;
  std::string text(reinterpret_cast<const char*>(data), size);
  if (text.find('\0') != std::string::npos) return 0;  // refused before: it is no text
  fuzz::is_refused({engine::ErrorKind::kInvalidJob},
                   [&] { jobs::parse_job(jobs::SourceText("job.txtpb", std::move(text))); });
  return 0;
}
