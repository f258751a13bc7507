"""What pages and pictures that are read without a network share: markup, policy, thumbnails, fonts and looks."""
