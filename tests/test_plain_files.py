"""Outputs appear whole, and nothing is written through a link."""

from __future__ import annotations

import pytest

from culture_tasks.plain_files import write_whole, written


def test_a_file_appears_whole_and_not_through_a_link(tmp_path, capfd):
    target, link, output = tmp_path / "target", tmp_path / "link", tmp_path / "output"
    target.write_text("another's")
    link.symlink_to(target)
    for path in (link, output):
        with pytest.raises(ZeroDivisionError), written(path) as file:
            file.write(str(1 / 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]
    for path in (link, output, output):
        write_whole(path, "ours\r\n\ud83c")
        assert path.read_bytes() == b"ours\r\n\\ud83c"
    assert (target.read_text(), link.is_symlink()) == ("another's", False)
    write_whole(type(target)("/dev/stdout"), "said")  # which is no place for a new file
    assert capfd.readouterr().out == "said"
