"""BLEnD (Myung et al., 2024): short answers and multiple choice on everyday life in 16 regions, in 13 languages."""
