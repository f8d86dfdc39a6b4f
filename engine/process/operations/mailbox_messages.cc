#include "engine/process/operations/mailbox_messages.h"

namespace arbalest::engine::process {

void MailboxReceipt::start(Transport& transport, int channel) {
  has_started_ = true;
  missing_ = transport.size() - 1;
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank == transport.rank()) continue;
    IncomingBytes& incoming = incoming_.emplace_back();
    incoming.start(transport, rank, channel, TransferKind::kMailbox,
                   [this, rank, &incoming] { arrived(rank, incoming); });
  }
}

void MailboxReceipt::arrived(int from, IncomingBytes& incoming) {
  if (incoming.payload().empty()) {
    --missing_;
    return;
  }
  take_(from, std::move(incoming.payload()));
  incoming.receive_next();
}

}  // namespace arbalest::engine::process
