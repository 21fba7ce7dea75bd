"""Models and what they are made of: layers, encoders, decoders, decoding, losses. Tensors only."""
