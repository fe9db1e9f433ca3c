"""Shapes of the tensors of well-known architectures."""

from __future__ import annotations

Shapes = tuple[tuple[int, ...], ...]

CLASSES = 1000  # of ImageNet
TILE = 1024


def alexnet() -> Shapes:
    """Return AlexNet with one tower, as most libraries implement it."""
    convolutions = (
        (64, 3, 11, 11),
        (192, 64, 5, 5),
        (384, 192, 3, 3),
        (256, 384, 3, 3),
        (256, 256, 3, 3),
    )
    matrices = ((4096, 256 * 6 * 6), (4096, 4096), (CLASSES, 4096))
    return tuple(s for shape in (*convolutions, *matrices) for s in (shape, shape[:1]))


def resnet(blocks: tuple[int, ...], bottleneck: bool, width: int = 64) -> Shapes:
    """Return a ResNet: four groups of residual blocks, with batch normalization."""
    grow = 4 if bottleneck else 1
    shapes = _convolution(width, 3, 7)
    inputs = width
    for group, count in enumerate(blocks):
        inner = width << group
        for place in range(count):
            if bottleneck:
                shapes += _convolution(inner, inputs, 1)
                shapes += _convolution(inner, inner, 3)
                shapes += _convolution(inner * grow, inner, 1)
            else:
                shapes += _convolution(inner, inputs, 3)
                shapes += _convolution(inner, inner, 3)
            if place == 0 and inputs != inner * grow:
                shapes += _convolution(inner * grow, inputs, 1)  # the projection shortcut
            inputs = inner * grow
    return (*shapes, (CLASSES, inputs), (CLASSES,))


def _convolution(outputs: int, inputs: int, side: int) -> Shapes:
    return ((outputs, inputs, side, side), (outputs,), (outputs,))


def gpt2(layers: int, width: int, words: int = 50257, places: int = 1024) -> Shapes:
    """Return a GPT-2: decoder layers with biases; input and output embeddings are tied."""
    layer: Shapes = (
        (width,),
        (width,),
        (width, 3 * width),
        (3 * width,),
        (width, width),
        (width,),
        (width,),
        (width,),
        (width, 4 * width),
        (4 * width,),
        (4 * width, width),
        (width,),
    )
    return ((words, width), (places, width), *layer * layers, (width,), (width,))


def bert(layers: int, width: int, words: int = 30522, places: int = 512) -> Shapes:
    """Return a BERT: encoder layers and the pooler."""
    square: Shapes = ((width, width), (width,))
    norm: Shapes = ((width,), (width,))
    up: Shapes = ((4 * width, width), (4 * width,))
    down: Shapes = ((width, 4 * width), (width,))
    layer = square * 4 + norm + up + down + norm
    words_and_places: Shapes = ((words, width), (places, width), (2, width))
    return words_and_places + norm + layer * layers + square


def llama(
    layers: int, width: int, inner: int, heads_width: int, words: int, tied: bool
) -> Shapes:
    """Return a Llama: decoder layers without biases; `heads_width` is that of all keys."""
    layer: Shapes = (
        (width, width),
        (heads_width, width),
        (heads_width, width),
        (width, width),
        (inner, width),
        (inner, width),
        (width, inner),
        (width,),
        (width,),
    )
    last: Shapes = () if tied else ((words, width),)
    return ((words, width), *layer * layers, (width,), *last)


def tiles(parameters: int) -> Shapes:
    """Return square matrices, for a model of which only the number of parameters is known."""
    count, rest = divmod(parameters, TILE * TILE)
    shapes: Shapes = ((TILE, TILE),) * count
    rows, left = divmod(rest, TILE)
    if rows:
        shapes += ((rows, TILE),)
    return (*shapes, (left,)) if left else shapes
