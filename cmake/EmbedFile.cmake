# cmake -DINPUT=FILE -DOUTPUT=FILE.cc -DNAME=NAME -P EmbedFile.cmake
# Writes a C++ source file that defines arbalest::embedded::NAME, a std::string_view of the bytes of INPUT.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n    "
  bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <string_view>

namespace arbalest::embedded {

namespace {
constexpr unsigned char kBytes[] = {
    ${bytes}};
}  // namespace

extern const std::string_view ${NAME};
const std::string_view ${NAME}(reinterpret_cast<const char*>(kBytes), sizeof(kBytes));

}  // namespace arbalest::embedded
")
