"""WorldCuisines (Winata et al., 2025): dishes and where they are from, in 30 languages and registers."""
