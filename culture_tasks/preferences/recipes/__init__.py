"""Recipes for TRL, as they are written into a folder of training data: one file for each method and way of training."""
