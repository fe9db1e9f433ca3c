"""Selections of the largest values: typed entrances to the compiled loops."""

from .reference import select

at_least = select.at_least
block_squares = select.block_squares
bucket_top_k = select.bucket_top_k
clear = select.clear
owe = select.owe
owe_at_least = select.owe_at_least
take_bucket_top_k = select.take_bucket_top_k
take_top_k = select.take_top_k
top_k = select.top_k
