"""The pools that tests of the replay play back."""

from pathlib import Path

POOLS = sorted((Path(__file__).parents[2] / "benchmarks/pools").glob("*.jsonl.gz"))
#: The record of one search, as benchmarks/make_pool.py makes it: most of its candidates were never confirmed.
SOFTMAX = Path(__file__).parents[1] / "data/pools/softmax-search-h200.jsonl.gz"
