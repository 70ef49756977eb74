"""Bytes and integers: what every kernel of the decoder is made of."""
