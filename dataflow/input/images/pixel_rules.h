// How the values in an image's file become the pixels that a model reads.
#pragma once

namespace arbalest::dataflow {

// Immutable. A saved model keeps the rules that it was trained with (saved_model/model_description.h).
struct PixelRules {
  enum class Luma {
    kBt601,  // BT.601 of the stored values (luma.h), whatever the file says about colors; 16-bit samples keep their
             // higher byte
    kLibpng  // for PNG files, what libpng makes of the file's gamma; 16-bit samples are rounded
  };

  Luma luma = Luma::kBt601;
  bool is_oriented = true;  // whether the image is turned as its EXIF orientation says
  bool is_reduced = false;  // whether JPEG images may be decoded to n/8 of their size, whatever that changes

  bool operator==(const PixelRules&) const = default;
};

// The rules of the versions that recorded none.
inline constexpr PixelRules kUnrecordedRules{
    .luma = PixelRules::Luma::kLibpng, .is_oriented = false, .is_reduced = true};

}  // namespace arbalest::dataflow
