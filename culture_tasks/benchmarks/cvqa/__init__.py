"""CVQA (Romero et al., 2024): questions about images from 30 countries, in the local language and in English."""
