"""A split as one resident tensor, from which mini-batches are selected by index."""

import torch


class Examples:
    """Stores normalized images as float32. Images to be cropped are stored padded, as bytes, and normalized on use."""

    def __init__(self, split, device, layout, padding=0, flip=False):
        channels, height, width = split.source.image
        self.size, self.padding, self.flip, self.layout = (height, width), padding, flip, layout
        self.labels = torch.frombuffer(split.labels, dtype=torch.uint8).long().to(device)
        self.scale = (1.0 / (255.0 * torch.tensor(split.source.stddev))).view(-1, 1, 1).to(device)
        self.shift = (-torch.tensor(split.source.mean) / torch.tensor(split.source.stddev)).view(-1, 1, 1).to(device)
        pixels = torch.frombuffer(split.images, dtype=torch.uint8).view(-1, channels, height, width).to(device)
        self.changes = padding > 0 or flip
        if self.changes:  # [examples, rows, columns, channels], so that a pixel's channels are copied together
            self.images = torch.nn.functional.pad(pixels, (padding,) * 4).permute(0, 2, 3, 1).contiguous()
        else:
            self.images = self.normalized(pixels)

    def __len__(self):
        return len(self.labels)

    def normalized(self, pixels):
        return torch.addcmul(self.shift, pixels.float(), self.scale).contiguous(memory_format=self.layout)

    def batch(self, indices):
        """Returns randomly augmented images, and labels."""
        images = self.augmented(indices) if self.changes else self.images[indices].contiguous(memory_format=self.layout)
        return images, self.labels[indices]

    def augmented(self, indices):
        """Crops each image at random, and mirrors it with a probability of one half."""
        count, device = len(indices), indices.device
        rows = self.offsets(count, device) + torch.arange(self.size[0], device=device)
        columns = torch.arange(self.size[1], device=device).expand(count, -1)
        if self.flip:
            mirrored = torch.rand(count, 1, device=device) < 0.5
            columns = torch.where(mirrored, self.size[1] - 1 - columns, columns)
        columns = self.offsets(count, device) + columns
        pixels = self.images[indices[:, None, None], rows[:, :, None], columns[:, None, :]]
        return self.normalized(pixels.permute(0, 3, 1, 2))

    def offsets(self, count, device):
        return torch.randint(0, 2 * self.padding + 1, (count, 1), device=device)
