"""Cultural benchmarks for lm-eval and lmms-eval."""

__version__ = "0.1.0"
