"""CARE (Guo et al., 2025): open questions on Chinese, Arab and Japanese culture, rated from 1 to 10."""
