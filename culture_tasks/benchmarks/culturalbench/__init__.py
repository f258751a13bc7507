"""CulturalBench (Chiu et al., 2024): questions about 45 countries and regions, with four options or true or false."""
