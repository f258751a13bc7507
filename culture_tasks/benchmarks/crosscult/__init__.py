"""CrossCult-KIBench (2026): cross-cultural knowledge insertion in English, Chinese and Arabic."""
