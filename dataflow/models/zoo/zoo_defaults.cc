#include "dataflow/models/zoo/zoo_defaults.h"

namespace arbalest::dataflow {

namespace {

constexpr int kHidden[] = {256, 128};
constexpr float kDropout = 0.5F;

void fill(v1::Mlp& mlp) {
  if (!mlp.hidden().empty()) return;
  for (const int width : kHidden) mlp.add_hidden(width);
}

void fill(v1::Lenet& lenet) {
  if (!lenet.has_batch_norm()) lenet.set_batch_norm(false);
}

void fill(v1::Alexnet& alexnet) {
  if (!alexnet.has_variant()) alexnet.set_variant(v1::Alexnet::TORCHVISION);
  if (!alexnet.has_dropout()) alexnet.set_dropout(kDropout);
}

void fill(v1::Vgg& vgg) {
  if (!vgg.has_depth()) vgg.set_depth(16);
  if (!vgg.has_batch_norm()) vgg.set_batch_norm(false);
  if (!vgg.has_head()) vgg.set_head(v1::Vgg::IMAGENET);
  if (!vgg.has_dropout()) vgg.set_dropout(kDropout);
}

void fill(v1::ResnetCifar& resnet) {
  if (!resnet.has_depth()) resnet.set_depth(20);
}

void fill(v1::Resnet& resnet) {
  if (!resnet.has_depth()) resnet.set_depth(50);
  if (!resnet.has_version()) resnet.set_version(v1::Resnet::V1_5);
}

void fill(v1::InceptionV3& inception) {
  if (!inception.has_auxiliary_head()) inception.set_auxiliary_head(true);
  if (!inception.has_dropout()) inception.set_dropout(kDropout);
}

void fill(v1::MobilenetV2& mobilenet) {
  if (!mobilenet.has_width()) mobilenet.set_width(1.0);
  if (!mobilenet.has_dropout()) mobilenet.set_dropout(0.2F);
}

void fill(v1::MatrixFactorization& factorization) {
  if (!factorization.has_width()) factorization.set_width(16);
  if (!factorization.has_mean()) factorization.set_mean(0.0F);
}

}  // namespace

void fill_zoo_defaults(v1::Zoo& zoo) {
  if (zoo.has_mlp()) fill(*zoo.mutable_mlp());
  if (zoo.has_lenet()) fill(*zoo.mutable_lenet());
  if (zoo.has_alexnet()) fill(*zoo.mutable_alexnet());
  if (zoo.has_vgg()) fill(*zoo.mutable_vgg());
  if (zoo.has_resnet_cifar()) fill(*zoo.mutable_resnet_cifar());
  if (zoo.has_resnet()) fill(*zoo.mutable_resnet());
  if (zoo.has_mobilenet_v2()) fill(*zoo.mutable_mobilenet_v2());
  if (zoo.has_matrix_factorization()) fill(*zoo.mutable_matrix_factorization());
  if (zoo.has_inception_v3()) fill(*zoo.mutable_inception_v3());
}

}  // namespace arbalest::dataflow
