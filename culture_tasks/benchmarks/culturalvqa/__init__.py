"""CulturalVQA (Nayak et al., 2024): open questions about images from 11 countries."""
