"""``weft runs`` without an action."""

from weft.cli.main import main


def test_without_an_action_the_runs_are_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 0
    assert capsys.readouterr().out == "No runs in runs.\n"
    folder = tmp_path / "runs" / "demo" / "0123"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    listed = []
    for words in (["runs"], ["runs", "list"], ["runs", "list", "runs"]):
        assert main(words) == 0
        listed.append(capsys.readouterr().out)
    assert "runs/demo/0123" in listed[0]
    assert listed[1:] == [listed[0]] * 2
