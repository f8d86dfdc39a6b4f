// Malformed job files, and files that protobuf's parser accepts or crashes on.
#include "tests/jobs/job_text.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kStops = "\nReading stops at the first error of this kind; there may be more after it.";

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string refusal_of_file(const std::string& path) {
  try {
    load_job(path);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kInvalidJob);
    return error.what();
  }
  FAIL(path << " was accepted");
  return "";
}

}  // namespace

TEST_CASE("the error for an unknown field suggests a similar field") {
  CHECK(refusal(changed("batch_size", "bach_size")) ==
        "job.txtpb:4:12: error: no field 'bach_size' in training; did you mean 'batch_size'?\n"
        "    4 | training { bach_size: 32 max_epochs: 10 }\n"
        "      |            ^");
}

TEST_CASE("all unknown fields are reported at once") {
  const std::string text = refusal("nam: \"x\"\nmodel { foo { bar { baz: 1 } } }\ndata { digit {} }\n");
  CHECK_THAT(text, ContainsSubstring("job.txtpb:1:1: error: no field 'nam' in the job; did you mean 'name'?"));
  CHECK_THAT(text, ContainsSubstring("job.txtpb:2:9: error: no field 'foo' in model"));
  CHECK_THAT(text, ContainsSubstring("job.txtpb:3:8: error: no field 'digit' in data; did you mean 'digits'?"));
  CHECK_THAT(text, ContainsSubstring("\n3 errors"));
}

TEST_CASE("the error for an unknown field shows its right place, or the valid fields") {
  CHECK_THAT(refusal("batch_size: 3"), ContainsSubstring("no field 'batch_size' in the job; did you mean "
                                                         "'training.batch_size'?"));
  CHECK_THAT(refusal("training { momentum: 3 }"),
             ContainsSubstring("no field 'momentum' in training; its path in a job is 'optimizer.<kind>.momentum'"));
  CHECK_THAT(refusal("training { xyzzy: 3 }"),
             ContainsSubstring("no field 'xyzzy' in training; its fields are batch_size, max_epochs, target_accuracy, "
                               "seed"));
}

TEST_CASE("among short names only the closest are suggested") {
  CHECK_THAT(refusal("optimizer { sdg {} }"), ContainsSubstring("did you mean 'sgd'?"));
  CHECK_THAT(refusal("model { zo {} }"), ContainsSubstring("did you mean 'zoo'?"));
  CHECK_THAT(refusal("model { zz {} }"), ContainsSubstring("no field 'zz' in model; its fields are zoo, layers"));
}

TEST_CASE("the error for a misspelled enum value lists the valid values") {
  CHECK(refusal(changed("base: 0.01", "base: 1 with_learners: SQR")) ==
        "job.txtpb:5:40: error: 'SQR' is not a value of with_learners; did you mean 'SQRT'? (values: KEEP, SQRT, "
        "LINEAR)\n"
        "    5 | learning_rate { base: 1 with_learners: SQR }\n"
        "      |                                        ^");
  CHECK_THAT(refusal(changed("base: 0.01", "base: 1 with_learners: linear")),
             ContainsSubstring("did you mean 'LINEAR'?"));
}

TEST_CASE("the error for a value of the wrong type shows its position") {
  const auto first_line = [](const std::string& from, const std::string& to) {
    const std::string text = refusal(changed(from, to));
    CHECK(text.find(kStops) == std::string::npos);
    return text.substr(0, text.find('\n'));
  };
  CHECK(first_line("max_epochs: 10", "batch_size: 3") == "job.txtpb:4:27: error: 'batch_size' is given more than once");
  CHECK(first_line("digits {}", "digits {} mnist {}") ==
        "job.txtpb:3:18: error: 'mnist' and 'digits' exclude each other; remove one of them");
  CHECK(first_line("32", "\"32\"") == "job.txtpb:4:24: error: expected an integer, not \"32\"");
  CHECK(first_line("32", "32.5") == "job.txtpb:4:24: error: expected an integer, not 32.5");
  CHECK(first_line("32", "99999999999") ==
        "job.txtpb:4:24: error: batch_size must be an integer in [-2147483648, 2147483647], not 99999999999");
  CHECK(first_line("max_epochs: 10", "seed: 18446744073709551616") ==
        "job.txtpb:4:33: error: seed must be an integer in [0, 18446744073709551615], not 18446744073709551616");
  CHECK(first_line("max_epochs: 10", "seed: -1") == "job.txtpb:4:33: error: expected an integer that is not negative");
  CHECK(first_line("0.01", "fast") == "job.txtpb:5:23: error: expected a number, not fast");
  CHECK(first_line("\"job\"", "job") == "job.txtpb:1:7: error: expected text in quotes, not job");
  CHECK(first_line("lenet {}", "mlp { hidden: [8, x, 4] }") == "job.txtpb:2:33: error: expected an integer, not x");
  CHECK(first_line("lenet {} }", "lenet {} } layers { conv { use_bias: no } }") ==
        "job.txtpb:2:52: error: use_bias must be true or false, not no");
  CHECK(first_line("lenet {} }", "lenet {} } layers { conv { use_bias: 2 } }") ==
        "job.txtpb:2:52: error: use_bias must be true or false, not 2");
  CHECK(first_line("base: 0.01", "base: 1 with_learners: \"SQRT\"") ==
        "job.txtpb:5:40: error: '\"SQRT\"' is not a value of with_learners; did you mean 'SQRT'? (values: KEEP, SQRT, "
        "LINEAR)");
}

TEST_CASE("parsing stops at errors from which it cannot recover") {
  const auto first_line = [](const std::string& from, const std::string& to) {
    const std::string text = refusal(changed(from, to));
    CHECK_THAT(text, ContainsSubstring(kStops));
    return text.substr(0, text.find('\n'));
  };
  CHECK(first_line("batch_size:", "batch_size") == "job.txtpb:4:23: error: expected ':', found '32'");
  CHECK(first_line("2 } }\n", "2 }\n") == "job.txtpb:7:1: error: the text ends within a message; is a '}' missing?");
  CHECK(first_line("\"job\"", "\xE2\x80\x9Cjob\xE2\x80\x9D") ==
        "job.txtpb:1:7: error: outside of quotes only ASCII characters are allowed; are these typographic quotes, or "
        "an accent?");
  CHECK(first_line("0.01", "0,01") == "job.txtpb:5:25: error: '0,01': a fraction is written 0.01, and a list [0, 01]");
  CHECK(first_line("lenet {}", "mlp { hidden: 3, 4 }") ==
        "job.txtpb:2:32: error: '3,4': a fraction is written 3.4, and a list [3, 4]");
  CHECK(first_line("max_epochs: 10", "target_accuracy: 99%") ==
        "job.txtpb:4:46: error: '99%': write percentages as fractions, such as 0.99 for 99 %");
  CHECK(first_line("name: \"job\"", "name: \"job") ==
        "job.txtpb:1:11: error: string literals cannot cross line "
        "boundaries.");
}

TEST_CASE("parsing continues after invalid values, repeated fields and unknown fields") {
  const std::string text = refusal(
      "name: 3\n"
      "model { zoo { mlp { hidden: [1, \"x\", 3] } } }\n"
      "data { digits {} mnist { directory: 5 } }\n"
      "training: 7\n"
      "learning_rate { base: fast with_learners: SQR bas: 1 }\n"
      "optimizer { sgd { momentum: 0.1 momentum: 0.2 } }\n"
      "training { batch_size { } seed: -1 } devices: 0 devices: \"cpu\" learnrs {}\n");
  CHECK(text.find(kStops) == std::string::npos);
  CHECK_THAT(text, ContainsSubstring("\n12 errors"));
  std::size_t at = 0;
  for (const char* said :
       {"job.txtpb:1:7: error: expected text in quotes, not 3\n",
        "job.txtpb:2:33: error: expected an integer, not \"x\"\n",
        "job.txtpb:3:18: error: 'mnist' and 'digits' exclude each other",
        "job.txtpb:4:11: error: training is a message: expected '{' and its fields, not 7\n",
        "job.txtpb:5:23: error: expected a number, not fast\n", "job.txtpb:5:43: error: 'SQR' is not a value of",
        "job.txtpb:5:47: error: no field 'bas' in learning_rate", "job.txtpb:6:33: error: 'momentum' is given more",
        "job.txtpb:7:23: error: expected ':', found '{'\n",
        "job.txtpb:7:33: error: expected an integer that is not negative\n",
        "job.txtpb:7:47: error: expected text in quotes, not 0\n", "job.txtpb:7:64: error: no field 'learnrs'"}) {
    INFO(said);
    at = text.find(said, at);
    REQUIRE(at != std::string::npos);  // issues are in the order of the file
  }
}

TEST_CASE("of many syntax errors the first are shown and the others counted") {
  const std::string many = refusal(repeated("zz: 1\n", 20000));
  CHECK_THAT(many, ContainsSubstring("job.txtpb:50:1: error: no field 'zz' in the job; its fields are name, model,"));
  CHECK(many.find("job.txtpb:51:") == std::string::npos);
  CHECK_THAT(many, Catch::Matchers::EndsWith("\n20000 errors, of which 50 are shown"));
  const std::string wrong = refusal(repeated("training { seed: x }\n", 60));
  CHECK_THAT(wrong, ContainsSubstring("\n50 errors\nReading stops"));
}

TEST_CASE("errors in a very long line are located quickly") {
  CHECK_THAT(refusal(repeated("zz:\t1 ", 500000)), ContainsSubstring("\n500000 errors, of which 50 are shown"));
}

TEST_CASE("protobuf extensions are refused") {
  CHECK_THAT(refusal(std::string(kGoodJob) + "[a.b] { base: 3 } [c]: 2 base: 1"),
             ContainsSubstring("job.txtpb:7:1: error: jobs have no extensions, such as [a.b]\n") &&
                 ContainsSubstring("such as [c]") && ContainsSubstring("'learning_rate.base'?") &&
                 ContainsSubstring("\n3 errors"));
}

TEST_CASE("columns count bytes, also after tabs, and carets are below the errors") {
  CHECK(refusal("\tname: \"\xC3\xA9\"\ttrainin {}") ==
        "job.txtpb:1:13: error: no field 'trainin' in the job; did you mean 'training'?\n"
        "    1 | \tname: \"\xC3\xA9\"\ttrainin {}\n"
        "      | \t         \t^");
}

TEST_CASE("deep nesting is refused and does not exhaust the stack") {
  CHECK_THAT(refusal(repeated("model { ", 20000)), ContainsSubstring("messages are nested more than 64 deep"));
  CHECK_THAT(refusal("x: " + repeated("[", 200000)), ContainsSubstring("messages are nested more than 64 deep"));
  const std::string said =
      refusal(std::string(kGoodJob), {"model=" + repeated("{ zoo ", 20000)}, engine::ErrorKind::kUsage);
  CHECK_THAT(said, ContainsSubstring("nested more than 64 deep"));
  CHECK(said.size() < 1000);
}

TEST_CASE("the errors for an empty file say what a job needs") {
  CHECK(refusal("") ==
        "job.txtpb:1:1: error: no data is chosen; add data { digits {} } (part of the program) or data { mnist {} }\n"
        "job.txtpb:1:1: error: learning_rate.base is missing: the length of the steps, such as 0.01\n"
        "job.txtpb:1:1: error: no model is chosen; add one, as in model { zoo { lenet {} } }, or list its layers\n"
        "3 errors");
}

TEST_CASE("files that are not job files are refused") {
  const tests::TemporaryDirectory directory;
  const auto file = [&](const std::string& content) {
    tests::write_text(directory / "x.txtpb", content);
    return (directory / "x.txtpb").string();
  };
  CHECK_THAT(refusal_of_file((directory / "none.txtpb").string()),
             ContainsSubstring("none.txtpb: the job file cannot be opened: No such file"));
  CHECK_THAT(refusal_of_file(directory.path().string()), ContainsSubstring("this is a directory"));
  CHECK_THAT(refusal_of_file(file(std::string("\x7f"
                                              "ELF\0\1\2",
                                              7))),
             ContainsSubstring("binary data, not a job file"));
  CHECK_THAT(refusal_of_file(file(repeated("# nothing\n", 500000))), ContainsSubstring("larger than 4 MiB"));
  CHECK_THAT(refusal_of_file(file("name: 3")), ContainsSubstring("x.txtpb:1:7: error: expected text in quotes, not 3"));
}

TEST_CASE("the error for a job file that cannot be opened gives the reason") {
  CHECK_THAT(refusal_of_file(repeated("long", 100) + ".txtpb"),
             ContainsSubstring("the job file cannot be opened: File name too long"));
}

TEST_CASE("a byte-order mark is skipped, and positions do not count it") {
  const tests::TemporaryDirectory directory;
  const std::string path = (directory / "x.txtpb").string();
  tests::write_text(path, "\xEF\xBB\xBF" + std::string(kGoodJob));
  CHECK(load_job(path).name == "job");
  tests::write_text(path, "\xEF\xBB\xBFname: 3");
  CHECK_THAT(refusal_of_file(path), ContainsSubstring("x.txtpb:1:7: error: expected text in quotes, not 3\n"
                                                      "    1 | name: 3\n"
                                                      "      |       ^"));
}

TEST_CASE("an empty list is refused rather than replaced by its default") {
  CHECK(refusal(with_model("model { zoo { mlp { hidden: [] } } }")) ==
        "job.txtpb:2:21: error: hidden is an empty list; name its elements, or remove the field\n"
        "    2 | model { zoo { mlp { hidden: [] } } }\n"
        "      |                     ^");
  CHECK_THAT(refusal(with_model("model { layers { name: \"a\" input: [] relu {} } layers: [] }")),
             ContainsSubstring("job.txtpb:2:28: error: input is an empty list"));
  CHECK_THAT(refusal("layers: 3 devices: []\n" + std::string(kGoodJob)),
             ContainsSubstring("no field 'layers'") && ContainsSubstring("devices is an empty list"));
}

TEST_CASE("a job without a name is named after its file") {
  const tests::TemporaryDirectory directory;
  std::string text(kGoodJob);
  text.erase(0, text.find('\n'));
  tests::write_text(directory / "my trial.txtpb", text);
  CHECK(load_job((directory / "my trial.txtpb").string()).name == "my-trial");
}

}  // namespace arbalest::jobs
