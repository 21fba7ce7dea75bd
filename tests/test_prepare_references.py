"""The script that makes references to train on, with lines that are published."""

import json
import random
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import textmill

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
import prepare_references  # noqa: E402

# ParsCit, crfpp/taggeddata/iconip.tagged.txt; the last with the tag that its file has there.
TAGGED = """\
<author> Kohonen, T. </author> <title> Self-Organaizing Maps </title> <date> 2001 </date> \
<publisher> Springer </publisher> <location> Heidelberg </location>
<author> Inoue, H. </author> <title> Self-organizing neural grove </title> <date> </date> \
<booktitle> In Proc. the 18th International Conference </booktitle> <pages> 613--622 </pages>
<author> Chappell, G.T., Taylor, J.G. </author> <title> The temporal Kohonen map </title> \
<date> 1993 </date> <journal> Neural Networks </journal> <volume> 6 </volume> <pages> 441--445 \
</pages> <contexts>
"""
# AnyStyle, res/parser/core.xml; the last is ParsCit's first, under other labels.
SEQUENCES = """\
<?xml version="1.0" encoding="UTF-8"?>
<dataset>
  <sequence>
    <author>R. Fletcher.</author>
    <title>Practical Methods of Optimization.</title>
    <publisher>John Wiley &amp; Sons,</publisher>
    <date>1987.</date>
  </sequence>
  <sequence>
    <author>S. Hiranandani, K. Kennedy.</author>
    <title>An overview of the fortran d programming system.</title>
    <genre>Technical Report CRPC-TR91121,</genre>
    <publisher>Dept of computer Science, Rice University,</publisher>
    <date>1991.</date>
  </sequence>
  <sequence>
    <author>Kohonen T.</author>
    <title>Self-Organaizing Maps</title>
    <note>2001 Springer Heidelberg</note>
  </sequence>
</dataset>
"""


def prepare(*words):
    command = [sys.executable, str(EXAMPLES / "prepare_references.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "iconip.tagged.txt").write_text(TAGGED, encoding="utf-8")
    (tmp_path / "core.xml").write_text(SEQUENCES, encoding="utf-8")
    return tmp_path


def test_the_published_formats_become_rows_of_one_set_of_labels(files):
    done = prepare(files / "out", files / "iconip.tagged.txt", files / "core.xml", "--valid", "0.4")
    assert done.returncode == 0, done.stderr
    both = rows(files / "out" / "train.jsonl") + rows(files / "out" / "valid.jsonl")
    by_author = {row["tokens"][0]: row for row in both}
    assert len(both) == 5  # one of six was there twice
    assert by_author["Kohonen,"]["tags"] == [
        *["author"] * 2, *["title"] * 2, "date", "publisher", "location",
    ]  # fmt: skip
    assert by_author["Inoue,"]["tags"].count("booktitle") == 6
    assert "date" not in by_author["Inoue,"]["tags"]
    assert by_author["Chappell,"]["tokens"][-1] == "441--445"
    report = by_author["S."]["tags"]
    assert list(dict.fromkeys(report)) == [
        "author", "title", "tech", "institution", "date",
    ]  # fmt: skip
    assert by_author["R."]["tokens"][-5:] == ["John", "Wiley", "&", "Sons,", "1987."]


def test_no_reference_of_another_file_is_taken(files):
    left_out = json.dumps({"tokens": ["R. FLETCHER", "Practical methods of optimization"],
                           "tags": ["author", "title"]})  # fmt: skip
    (files / "dev.jsonl").write_text(left_out + "\n")
    (files / "again.jsonl").write_text(left_out + "\n")
    done = prepare(files / "out", files / "again.jsonl", "--without", files / "dev.jsonl")
    assert done.stdout.splitlines()[0].endswith("train.jsonl: 0 references")


@pytest.mark.parametrize(
    ("title", "beside", "label"),
    [
        ("In Proceedings of SIGMOD,", {"pages": "1-2"}, "booktitle"),
        ("IEEE Transactions on Computers,", {"publisher": "IEEE"}, "journal"),
        ("Proceedings of the National Academy of Sciences", {"volume": "108"}, "journal"),
        ("Logic and Data Bases,", {"publisher": "Plenum Press,"}, "booktitle"),
        ("Machine Learning,", {"volume": "2 (3),"}, "journal"),
    ],
)
def test_what_contains_a_work_is_a_journal_or_a_book(title, beside, label):
    assert prepare_references.container(title, beside) == label


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "", "wanted a file that ends with .txt, .xml, .jsonl"),
        ("a.txt", "no tag at all", "the label '' is none of author, "),
        ("a.xml", "<dataset><sequence><mood>x</mood></sequence></dataset>", "the label 'mood'"),
        ("a.xml", "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "without a document type"),
        ("a.jsonl", '{"tokens": ["a"], "tags": []}', "line 1: wanted tokens and as many tags"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_file(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    done = prepare(tmp_path / "out", tmp_path / name)
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert said in done.stderr
    assert name in done.stderr


def test_the_experiment_learns_fields_from_what_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw, lines = random.Random(0), []
    names, things = ["Ann", "Bob", "Cy", "Dee"], ["maps", "trees", "graphs", "nets"]
    for number in range(80):
        title = " ".join(draw.sample(things, 2))
        author = f"{draw.choice(names)}, {draw.choice('ABCD')}."
        lines.append(
            f"<author> {author} </author> <title> On {title}. </title> <date> {1950 + number}. "
            f"</date> <journal> J. of {draw.choice(things)}, </journal> <volume> {number} </volume>"
        )
    Path("made.tagged.txt").write_text("\n".join(lines), encoding="utf-8")
    assert prepare("data/references", "made.tagged.txt").returncode == 0
    words = ["trainer.max_steps=60", "model.dropout=0", "optimizer.lr=0.02"]
    run = textmill.train("tagging/references/local", words, run_dir="run")
    found = textmill.load(run.folder)("Bob, D. On nets trees. 1999. J. of maps, 7")
    assert " ".join(found.tags) == (
        "author author title title title date journal journal journal volume"
    )


class Ending(BaseHTTPRequestHandler):
    """Announces more than it sends."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"<dataset>")

    def log_message(self, *_):
        """Says nothing."""


def test_a_download_that_ends_early_is_not_kept(tmp_path):
    with HTTPServer(("127.0.0.1", 0), Ending) as server:
        threading.Thread(target=server.handle_request).start()
        url = f"http://127.0.0.1:{server.server_port}/core.xml"
        with pytest.raises(ValueError, match="91 bytes are missing"):
            prepare_references.downloaded(tmp_path, url)
    assert not [*tmp_path.iterdir()]
