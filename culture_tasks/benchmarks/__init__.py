"""The benchmarks: data, documents and scoring, without a harness."""
