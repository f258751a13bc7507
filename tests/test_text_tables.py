"""Tables as text; texts that could act in them are tested with the report."""

from culture_tasks.text_tables import as_markdown, as_text, csv_cell, markdown_cell, plain, printable


def test_a_text_like_a_formula_is_not_run_and_others_stay():
    for text in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "\n=1", "＝1"):
        assert csv_cell(text) == f"'{text}"
    assert csv_cell("\x1b[31m\u202ex\u2066\x9b\n\u200cy") == "[31mx\n\u200cy"
    assert csv_cell("\u202e\x07=1") == "'=1"
    assert [csv_cell(value) for value in (-1.5, 3, None, "a-b", "")] == [-1.5, 3, None, "a-b", ""]


def test_markdown_shows_markup_as_it_is():
    assert markdown_cell("[x](http://a) | <b> `c` *d*\n# e") == r"\[x\](http://a) \| \<b\> \`c\` \*d\* \# e"


def test_tables():
    assert as_text(["a", "bb"], [["文", "1"]]) == "a   bb\n--  --\n文  1"
    assert as_markdown(["a"], [[markdown_cell("x|y")]]) == "| a |\n| --- |\n| x\\|y |"
    assert as_markdown(["a", "b"], [["x|y", "z"]]) == "| a | b |\n| --- | --- |\n| x\\|y | z |"
    assert as_markdown(["`a`", "b"], [["c", "1"]], numbers=1) == "| `a` | b |\n| --- | ---: |\n| c | 1 |"


def test_text_that_is_shown_does_not_act():
    assert plain("a\u202eb\u2066c\x1b[31m") == "abc[31m"
    assert printable("a\x1b[31m\tb\r\n  c\u202e\udcff") == "a[31m b\n  c\ufffd"
