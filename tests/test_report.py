"""Reports: figures worked by hand, warnings that are due, and a page that runs only its own."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import benchmarks
from benchmarks.report import ReportBench
from fake_runs import fake_replay, write_run
from hopplus.cli import main
from hopplus.config import ConfigError
from hopplus.report import html as pages
from hopplus.report.html import as_json, page_text
from hopplus.report.page import Page, Section
from hopplus.report.pages.curves import Curved, curves_section
from hopplus.report.pages.logged import Logged, read_logged
from hopplus.report.pages.runs import runs_page
from hopplus.report.pages.summary import Summary, summarise
from hopplus.report.translations import Sentence, Translations, chinese
from hopplus.runs.folder import open_run
from test_page import EVIL, Read

SCRIPT = "<script>alert(1)</script>"


def logged_of(**values: Any) -> Logged:
    arrays = {name.replace("__", "/"): np.array(value, float) for name, value in values.items()}
    updates = len(next(iter(arrays.values())))
    return Logged(100.0 * np.arange(1, updates + 1), False, arrays, 0, {})


def charts_of(*logged: Logged, **more: Any) -> dict[str, Any]:
    """The charts of runs by title, as the script reads them."""
    runs = [Curved(f"run {number}", one, **more) for number, one in enumerate(logged)]
    data = json.loads(as_json(curves_section(runs, Translations()).data))
    return {chart["title"]: chart for chart in data["charts"]} | {"runs": data["runs"]}


def summary_of(path: Path) -> Summary:
    return summarise([open_run(path)])[0]


def warnings_of(path: Path) -> str:
    return "; ".join(Translations()(one) for one in summary_of(path).warnings())


# Summaries.


def test_a_summary_is_of_the_last_tenth(tmp_path: Path) -> None:
    returns = np.zeros((20, 5, 4))
    returns[18:] = np.array([1.0, 2.0, 3.0, 2.0, 2.0])[:, None]  # the last two of twenty updates
    run = summary_of(write_run(tmp_path / "a", returns))
    assert run.mean_return is not None
    assert run.mean_return.mean == pytest.approx(2.0)
    assert run.best == 3
    figures = run.as_json()
    assert figures["finished"]
    assert (figures["seeds"], figures["seconds"]) == (5, 12.5)
    assert figures["warnings"] == []
    assert run.command == "hopplus train hop-plus --name a"
    page = runs_page([run], "")
    assert page.answer == f"Mean return {run.mean_return} of 3 at best"
    assert page.mark == "good"
    rows = {row[0]: row[1] for row in page.sections[0].rows}
    assert rows["share of the best"] == "66.7%"
    assert rows["return of seat 3 ± 95%"] == str(run.mean_return)
    assert rows["time"] == "12 s, of which 4 s until the first update"


def test_warnings_when_they_are_due(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    returns = 2 + 0.01 * rng.normal(size=(10, 5, 4))
    assert warnings_of(write_run(tmp_path / "fine", returns)) == ""
    assert "few seeds (2)" in warnings_of(write_run(tmp_path / "few", returns[:, :2]))
    assert "there is no interval" in warnings_of(write_run(tmp_path / "one", returns[:, :1]))
    returns[:, :, 2] += 0.5
    order = warnings_of(write_run(tmp_path / "order", returns))
    said = r"seats differ: seat 2 gets 2\.5\d, seat \d only [12]\.\d\d \(permutation test, p = "
    assert re.match(said, order)
    half = write_run(tmp_path / "half", updates=10, finished=False)
    lines = (half / "metrics.jsonl").read_text().splitlines(keepends=True)
    (half / "metrics.jsonl").write_text("".join(lines[:5]))
    assert "not finished, at 50% of its steps; go on with hopplus resume" in warnings_of(half)
    gate = np.ones((5, 4))
    gate[0, :3] = 0
    for what in ("imagined", "search"):
        opened = [one.tolist() for one in (0 * gate, gate, gate, gate, gate, 0 * gate)]
        shut = [{f"{what}/open": one} for one in opened]
        told = warnings_of(write_run(tmp_path / what, more=shut))
        assert f"{'imagination' if what == 'imagined' else 'the search'} never opened" in told
        assert "for 3 of 20 seats" in told


def test_runs_side_by_side(tmp_path: Path) -> None:
    low = write_run(tmp_path / "one" / "same", np.full((3, 5, 4), 1.0), preset="ppo")
    high = write_run(tmp_path / "two" / "same", np.full((3, 5, 4), 2.0))
    runs = summarise([open_run(low), open_run(high)])
    assert [run.name for run in runs] == [str(low), str(high)]  # told apart
    page = runs_page(runs, "")
    assert page.answer == f"{high} has the highest mean return: 2.000 ± 0.000 of 3 at best"
    rows = {row[0]: row[1:] for row in page.sections[0].cells}
    assert rows["mean return ± 95%"] == ["1.000 ± 0.000", "2.000 ± 0.000"]
    assert rows["learns"] == ["policy", "policy, opponent, goal, world, imagination"]
    seeds = next(section for section in page.sections if section.title == "Across seeds")
    assert seeds.cells[0] == [str(low), "1.000 [1.000, 1.000]", ""]
    assert seeds.cells[1] == [str(high), "2.000 [2.000, 2.000]", "1.000 [1.000, 1.000]"]
    config = json.loads((low / "config.json").read_text())
    config["config"]["game"]["size"] = 6
    (low / "config.json").write_text(json.dumps(config))
    other = runs_page(summarise([open_run(low), open_run(high)]), "")
    assert "different games" in " ".join(other.lines)
    seeds = next(section for section in other.sections if section.title == "Across seeds")
    assert [column.name for column in seeds.columns] == ["run", "IQM [95% bootstrap interval]"]
    assert "different games" not in " ".join(page.lines)


# What a page may run and say.


def test_json_in_a_page_ends_nothing_and_keeps_everything() -> None:
    tree = {EVIL: [EVIL, "</script><!--\u2028\u2029", None, True, 7, "汉"]}
    text = as_json(tree)
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == tree
    numbers = [0.123456, float("nan"), -float("inf"), 3.0, 1e30, np.float32(0.5), np.arange(2)]
    assert json.loads(as_json(numbers)) == [0.1235, None, None, 3, 1e30, 0.5, [0, 1]]


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """A run that is evil wherever it can be."""
    path = write_run(tmp_path_factory.mktemp("evil") / "run", seeds=2)
    facts = json.loads((path / "config.json").read_text())
    facts |= {"command": ["x", SCRIPT], "hardware": SCRIPT, "git": SCRIPT}
    (path / "config.json").write_text(json.dumps(facts))
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    for record in lines:
        record[f"world/loss/{SCRIPT}"] = record["value_loss"]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return replace(summary_of(path), name=SCRIPT)


def test_only_its_own_script_runs(evil: Summary) -> None:
    replay = fake_replay(SCRIPT)
    replay["episodes"][0]["label"] = replay["kinds"][0] = replay["actions"][0] = SCRIPT
    section = Section(SCRIPT, SCRIPT, header=[SCRIPT], rows=[[SCRIPT]])
    text = page_text(runs_page([evil], SCRIPT, "en", [section], [(SCRIPT, replay)]))
    read = Read(text)
    scripts = read.named("script")
    assert [script.get("type") for script in scripts] == ["application/json"] * 3 + [None]
    assert text.count("<script") == text.count("</script") == 4
    (policy,) = [str(meta["content"]) for meta in read.named("meta") if "http-equiv" in meta]
    own = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
    assert own is not None
    digest = base64.b64encode(hashlib.sha256(own[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline';")
    assert not re.search(r"https?:|@import|\bsrc=\"(?!data:)|href=\"(?!#part-)", text)
    assert SCRIPT in read.text  # as text


def test_the_script_reads_no_html_and_runs_no_text() -> None:
    for name in pages.SCRIPTS:
        script = (pages.HERE / name).read_text(encoding="utf-8")
        forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\("
        assert not re.search(forbidden, script), name
        assert not re.search(r"</script|<!--|https?:|\bfetch\(|XMLHttp|import\(", script), name


def test_pages_without_anything_to_handle_run_nothing() -> None:
    text = page_text(Page("title", "answer", "good", sections=[Section("one")]))
    assert "<script" not in text
    assert "script-src" not in text


def test_everything_has_chinese(evil: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a page asks for, in Python, in the template or in the scripts."""
    asked: set[str] = set()
    speak = Translations.__call__

    def listen(self: Translations, text: str | Sentence, **values: Any) -> str:
        asked.add(text.text if isinstance(text, Sentence) else text)
        return speak(self, text, **values)

    monkeypatch.setattr(Translations, "__call__", listen)
    text = page_text(runs_page([evil], "", "zh", [], [("a", fake_replay())]))
    page_text(runs_page([evil, evil], "", "zh"))
    scripts = "".join(path.read_text(encoding="utf-8") for path in pages.HERE.glob("*.js"))
    calls = re.findall(r"\bsay\(([^()]*)", scripts)
    said = {text for call in calls for text in re.findall(r'"([^"]+)"', call)}
    assert {
        "play",
        "Predicted to go for; 0 is chance",
        "Predicted actions; ● is what it did: predicted.",
    } <= said
    template = (pages.HERE / "page.html").read_text(encoding="utf-8")
    asked |= said | set(re.findall(r'say\("([^"]+)"\)', template))
    own = {row for row in asked if re.search("[\u4e00-\u9fff]", row)}  # said already
    assert asked - own - set(chinese()) == set()
    assert '<html lang="zh-CN">' in text
    assert "平均回报" in text
    for english, translated in chinese().items():
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", translated))


# The command.


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "a", seeds=2)
    assert main(["report", str(path), "--quick"]) == 0
    out = capsys.readouterr().out
    assert "⚠ few seeds (2)" in out
    assert f"The page is {path / 'report.html'}" in out
    assert (path / "report.html").stat().st_size < 3e6
    other = write_run(tmp_path / "b")
    page = tmp_path / "new" / "both.html"
    arguments = [str(path), str(other), "--out", str(page), "--language", "zh", "--quick", "--json"]
    assert main(["report", *arguments]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["page"] == str(page)
    assert [run["seeds"] for run in figures["runs"]] == [2, 5]
    assert "概要" in page.read_text(encoding="utf-8")


def test_a_run_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "is not a run of hopplus" in capsys.readouterr().err
    path = write_run(tmp_path / "a")
    for spoilt in ("[1]\n", '{"update": 1, "steps": "x"}\n', "{}\n"):
        (path / "metrics.jsonl").write_text(spoilt)
        with pytest.raises(ConfigError, match=r"metrics\.jsonl is damaged"):
            read_logged(open_run(path))
    (path / "metrics.jsonl").unlink()
    (path / "result.json").write_text("[1]")
    assert main(["report", str(path), "--quick"]) == 2
    assert "result.json is damaged" in capsys.readouterr().err
    (path / "result.json").unlink()
    assert main(["report", str(path), "--quick"]) == 0  # nothing logged yet
    assert "No returns yet" in capsys.readouterr().out


def test_the_time_of_a_page_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--runs", "2", "--seeds", "2", "--points", "3"]
    assert benchmarks.main(ReportBench, [*few, "--json"]) == 0
    speed = json.loads(capsys.readouterr().out)
    assert 0 < speed["seconds"] < 20
    assert 5e4 < speed["page_bytes"] < 3e6
    assert (
        speed["read_bytes"] > 2 * 3 * 2 * 4 * 40 * 8
    )  # runs, points, seeds, seats, metrics, digits
