"""Layouts of papers: those that rules are written against, and those held back."""

from collections.abc import Mapping
from dataclasses import replace

from tests.pipelines.documents.paper_pdf import Layout

CONFERENCE = Layout(
    leading=11.5, margin=60, style="ieee", label="[{}]", label_width=20, gap=2, list_size=9,
    head="Proceedings of the 12th Conference on Things", first_page=101,
)  # fmt: skip
JOURNAL = Layout(
    leading=12.5, style="apa", hang=14, gap=0, head="{n}|A. Author et al.", list_size=9,
    head_odd="On the structure of things|{n}", foot="", first_page=233, after="Appendix A",
)  # fmt: skip
PREPRINT = Layout(
    font="Helvetica", bold="Helvetica-Bold", size=9.5, leading=13, style="acl", hang=0, gap=6,
    justify=False, spaces=True, foot="Page {n}", heading="REFERENCES", hyphenate=False,
)  # fmt: skip


def in_columns(layouts: Mapping[str, Layout]) -> dict[str, Layout]:
    """Each with one column and with two."""
    return {
        f"{name}, {columns} col.": replace(layout, columns=columns)
        for name, layout in layouts.items()
        for columns in (1, 2)
    }


WRITTEN_AGAINST = in_columns(
    {
        "conference, numbered": CONFERENCE,
        "conference, by author": replace(CONFERENCE, label="", style="acl", hang=10),
        "journal, numbered": replace(JOURNAL, label="{}.", label_width=22, style="springer"),
        "journal, by author": JOURNAL,
        "preprint, numbered": replace(PREPRINT, label="({})", label_width=22, style="vancouver"),
        "preprint, by author": PREPRINT,
    }
)
"""Three layouts, with numbers and by author."""

HELD_BACK = {
    "Word, justified, 1 col.": Layout(
        size=12, leading=14, spaces=True, hyphenate=False, style="chicago", hang=0, gap=8,
        foot="{n}", foot_align="right", heading="Bibliography", heading_size=14, count=25,
    ),
    "ACM, 2 col.": Layout(
        columns=2, size=9, leading=10.5, margin=54, gutter=24, style="acm", label="[{}]", gap=0,
        label_width=17, label_right=True, list_size=7, heading="REFERENCES", heading_size=11,
        foot="", head="Conference’17, July 2017, Washington, DC, USA|Smith et al.",
        footnotes=True, count=50,
    ),
    "APA, double spaced, 1 col.": Layout(
        size=12, leading=24, justify=False, hyphenate=False, spaces=True, style="apa", hang=36,
        gap=0, heading_align="center", head="RUNNING HEAD: THINGS|{n}", foot="", count=20,
    ),
    "Nature, raised numbers, 2 col.": Layout(
        columns=2, size=9, leading=10.5, margin=50, style="nature", label="{}", raised=True,
        label_width=0, first_indent=0, gap=0, list_size=7, heading_size=8, count=40,
        after="Acknowledgements", caption=True,
    ),
    "plain numbers, 2 col.": Layout(
        columns=2, size=9, leading=10.5, style="nature", label="{}", label_width=14, gap=0,
        list_size=8, heading="Literature cited", after="Author contributions",
    ),
    "IEEE, 2 col.": Layout(
        columns=2, leading=11.5, margin=48, gutter=14, style="ieee", label="[{}]", label_width=18,
        label_right=True, gap=0, list_size=8, heading="R EFERENCES", heading_align="center",
        heading_size=10, head="IEEE TRANSACTIONS ON THINGS, VOL. 14, NO. 8, AUGUST 2015|{n}",
        foot="",        bold="Times-Roman", count=45,
    ),
    "no indent, no gap, 1 col.": Layout(style="chicago", hang=0, gap=0, count=30),
    "no indent, no gap, 2 col.": Layout(columns=2, style="springer", hang=0, gap=0, list_size=9),
    "first lines indented, 1 col.": Layout(
        style="apa", hang=0, first_indent=14, gap=0, heading="LITERATUR", foot="- {n} -"
    ),
    "line numbers, 1 col.": Layout(
        leading=18, style="vancouver", label="{}.", line_numbers=1, gap=0, justify=False,
    ),
    "each fifth line numbered, 1 col.": Layout(leading=16, style="acl", line_numbers=5),
    "footnotes, 2 col.": Layout(columns=2, style="acl", footnotes=True, gap=3, list_size=9),
    "contents, 1 col.": Layout(style="springer", label="{}.", contents=True, after="Index"),
    "rows across columns, 2 col.": Layout(columns=2, style="acl", row_by_row=True, caption=True),
    "A4, many short, 2 col.": Layout(
        columns=2, paper=(595, 842), size=8, leading=9.5, margin=40, gutter=12, style="vancouver",
        label="{}.", label_width=14, gap=0, count=120,
    ),
}  # fmt: skip
"""Layouts scored when the rules for the others were written; then rules were mended on them."""

NEVER_MENDED = {
    "three columns, numbered": Layout(
        columns=3, size=8, leading=9.5, margin=45, gutter=14, style="vancouver", label="{}.",
        label_width=15, gap=0, heading="Literature Cited", heading_size=9, count=40,
    ),
    "thesis, by author, 1 col.": Layout(
        size=11, leading=16, style="apa", hang=18, gap=8, head="CHAPTER 5. REFERENCES|{n}", foot="",
        heading="Bibliography", heading_size=18, first_page=87, count=45,
    ),
    "A4, sans, gaps, 2 col.": Layout(
        columns=2, paper=(595, 842), font="Helvetica", bold="Helvetica-Bold", size=8.5, leading=11,
        margin=50, style="chicago", hang=0, gap=5, heading="Referencias", justify=False,
        spaces=True,
    ),
    "LNCS, numbered, 1 col.": Layout(
        margin=132, style="springer", label="{}.", label_width=16, label_right=True, gap=0,
        list_size=9, head="{n}|A. Author et al.", head_odd="Learning of Things|{n}", foot="",
    ),
    "ragged, no indent, no gap, 2 col.": Layout(
        columns=2, font="Helvetica", bold="Helvetica-Bold", size=8, leading=10, style="apa", hang=0,
        gap=0, justify=False, hyphenate=False,
    ),
    "chemistry, (1), 2 col.": Layout(
        columns=2, size=9, leading=10.5, style="nature", label="({})", label_width=16, gap=0,
        list_size=7.5, heading="REFERENCES AND NOTES", heading_size=9, footnotes=True, caption=True,
    ),
    "by author, hanging, rows across, 2 col.": Layout(
        columns=2, style="springer", hang=12, gap=0, row_by_row=True, list_size=9, footnotes=True,
        heading="7. References", head="Running title of the paper|{n}", foot="", after="Appendix",
    ),
}  # fmt: skip
"""Layouts scored once all rules were written."""
