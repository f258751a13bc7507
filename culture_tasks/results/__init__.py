"""The files that both harnesses write: finding them, reading them, and writing them anew."""
