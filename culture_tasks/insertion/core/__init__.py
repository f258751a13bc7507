"""What all insertion methods share."""
