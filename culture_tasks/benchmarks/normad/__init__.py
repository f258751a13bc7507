"""NormAd (Rao et al., 2025): is what somebody does in a story acceptable there, given more or less of its culture?"""
