"""Commands in the documents are found, and one that is not run, or not right, is noticed; so is a
link that leads nowhere."""

import ast
import re
from pathlib import Path

import pytest

import docs_small
from docs_markdown import Command, DocumentError, Script, Step, options_of, steps_of
from docs_runner import (
    Ended,
    Runner,
    captured,
    known_options,
    make_makers,
    missing_files,
    missing_output,
    run_document,
    used_before_made,
    wrong_page,
)
from docs_small import (
    DOCUMENTS,
    MOST_SEEDS,
    README,
    ROOT,
    TRANSLATED,
    TRANSLATIONS,
    read_documents,
    small,
    stale,
)

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def words_of(text: str) -> list[str]:
    return [str(step) for step in steps_of(text) if isinstance(step, Command)]


def command_of(text: str) -> Command:
    step = steps_of(f"    {text}")[0]
    assert isinstance(step, Command)
    return step


def problems(text: str, folder: Path) -> list[str]:
    """What is wrong with a document of this text, run in the folder."""
    return list(run_document(steps_of(text), Runner(folder, {})))


def test_commands_are_found_wherever_they_stand() -> None:
    text = """
# Title with `hopplus list presets`

Some text with `hopplus evaluate
--help` in it, and `stag`.

    hopplus train ppo --name a    # writes runs/a
    hopplus resume runs/a#1@2

| command | time |
|---|---|
| `hopplus bench game` (`stag\\|hare`) | 1 s |

```python
import hopplus
```

```sh
hopplus report \\
  runs/a
```
"""
    steps = steps_of(text)
    assert [str(step) for step in steps if isinstance(step, Command)] == [
        "hopplus list presets",
        "hopplus evaluate --help",
        "hopplus train ppo --name a",
        "hopplus resume runs/a#1@2",
        "hopplus bench game",
        "hopplus report runs/a",
    ]
    assert [step.line for step in steps] == [2, 4, 7, 8, 12, 15, 19]
    assert steps[5] == Script("import hopplus", 15)
    train = steps[2]
    assert isinstance(train, Command)
    assert train.comment == "writes runs/a"


def test_variables_and_quotes_are_those_of_the_shell() -> None:
    text = """
    BIG="--game.size 8"; both="$BIG --steps 9"
    hopplus collect --players "a|b" $both
"""
    (step,) = steps_of(text)
    assert isinstance(step, Command)
    assert str(step) == "hopplus collect --players a|b --game.size 8 --steps 9"
    assert step.words[3] == "a|b"


def test_output_that_is_shown_belongs_to_its_command() -> None:
    steps = steps_of(
        "    $ hopplus list presets\n    ppo ...\n\n    more\n    $ hopplus list games"
    )
    assert [getattr(step, "shown", None) for step in steps] == ["ppo ...\n\nmore", ""]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("    frobnicate --all", "no command"),
        ("    0 . S\n    # 1h .", "no command"),
        ("    hopplus train ppo $BIG", "BIG: unbound variable"),
        ("```ruby\nputs 1\n```", "a fence marked 'ruby'"),
        ("```\nhopplus list\n```", "a fence marked ''"),
        ("```text\nhopplus list\n```", "a command in a block of text"),
        ("as above with `belief $H`", "a part of a command"),
        ("- a list:\n\n  ```sh\n  frobnicate\n  ```", "no command"),
        ("~~~sh\nfrobnicate\n~~~", "no command"),
        ("```sh\nhopplus list games", "does not end"),
        ("```text\n  .venv/bin/hopplus list games\n```", "a command in a block of text"),
        ("\thopplus list games", "that nothing runs"),
        ("> hopplus list games", "that nothing runs"),
        ("<pre>hopplus list games</pre>", "that nothing runs"),
        ("with `.venv/bin/hopplus list games`", "a part of a command"),
        ("with `JAX_PLATFORMS=cpu hopplus list games`", "a part of a command"),
        ("    echo hi", "no command"),
        ("| command | x |\n|---|---|\n| ... `--world.head cells` | 1 |", "without a whole one"),
    ],
)
def test_a_block_that_would_not_be_run_is_an_error(text: str, wrong: str) -> None:
    with pytest.raises(DocumentError, match=wrong.replace(".", r"\.")):
        steps_of(text)


def test_every_block_of_the_documents_is_known_and_no_entry_is_stale() -> None:
    assert stale(read_documents()) == []


@pytest.mark.parametrize("table", ["SMALL", "NOT_RUN", "EXAMPLES", "PLACEHOLDERS"])
def test_a_stale_entry_is_named(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(getattr(docs_small, table), "hopplus gone", "")
    assert stale(read_documents()) == ["hopplus gone"]


@pytest.mark.parametrize("path", TRANSLATIONS, ids=lambda path: path.name)
def test_both_languages_have_the_same_commands_and_code_in_the_same_order(path: Path) -> None:
    def shape(steps: list[Step]) -> list[object]:
        return [
            step.words if isinstance(step, Command) else ast.dump(ast.parse(step.text))
            for step in steps
        ]

    original = path.with_name(path.name.replace(".zh-CN", ""))
    documents = read_documents([original, path])
    assert shape(documents[original]) == shape(documents[path])


def anchors_of(path: Path) -> set[str]:
    """The headings of a document as GitHub names them in links."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.strip().lower()).replace(" ", "-") for each in headings}


def links_of(path: Path) -> list[tuple[Path, str]]:
    """The files of the repository that a document links to, each with its anchor or nothing."""
    found = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", path.read_text(encoding="utf-8"))
    return [((path.parent / name).resolve() if name else path, anchor) for name, anchor in found]


@pytest.mark.parametrize(
    "path",
    [*DOCUMENTS, *TRANSLATIONS, *TUTORIALS, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda path: path.name,
)
def test_links_lead_to_files_and_headings_that_are_there(path: Path) -> None:
    for target, anchor in links_of(path):
        assert target.exists(), f"{path.name} links to {target.name}, which is not there"
        assert not anchor or anchor in anchors_of(target), f"{target.name} has no #{anchor}"


@pytest.mark.parametrize(
    "path",
    [*TRANSLATIONS, *(path for path in TUTORIALS if ".zh-CN" in path.name)],
    ids=lambda path: path.name,
)
def test_a_translation_leads_to_translations(path: Path) -> None:
    original = path.with_name(path.name.replace(".zh-CN", ""))
    for target, _ in links_of(path):
        translated = target.with_name(f"{target.stem}.zh-CN.md")
        assert target == original or not translated.exists(), f"there is {translated.name}"


@pytest.mark.parametrize("readme", [README, TRANSLATED], ids=lambda path: path.name)
def test_every_page_is_linked_from_the_readme(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8").replace(".zh-CN", "")  # a translation is as good
    pages = {path.name for path in DOCUMENTS} - {README.name, *(path.name for path in TRANSLATIONS)}
    assert [name for name in sorted(pages) if f"docs/{name}" not in text] == []


def test_options_named_in_running_text_are_known() -> None:
    known = known_options()
    assert {"--game.size", "--search.simulations", "--fit.epochs", "--rounds"} <= known
    for path in (*DOCUMENTS, *TRANSLATIONS):
        for option in options_of(path.read_text(encoding="utf-8")):
            start = option.removesuffix("*")
            fits = start in known or (option != start and any(o.startswith(start) for o in known))
            assert fits, f"{path.name} names {option}, which no command has"


def test_options_are_found_in_running_text() -> None:
    text = "With `--goal.* and --x-y 8`, `hopplus train --not` and\n`--a.b\nc`, not --this."
    assert options_of(text) == ["--goal.*", "--x-y", "--a.b"]


def test_commands_are_made_small_by_what_stands_behind_them() -> None:
    words = small(command_of("hopplus train hop --seeds 5 --steps 1e6"))
    assert " ".join(words).startswith("hopplus train hop --seeds 5 --steps 1e6 --")
    assert words[-2:] == ["--seeds", str(MOST_SEEDS)]
    assert "--search.simulations" in words
    assert "--search.simulations" not in small(command_of("hopplus train hop-plus"))
    assert small(command_of("hopplus train ppo --help")) == ["hopplus", "train", "ppo", "--help"]
    assert small(command_of("python examples/trained_players.py runs/a 1000"))[-1] == "2"
    assert small(command_of("make test")) == ["make", "test", "--dry-run"]


def test_documents_are_run_and_what_is_wrong_is_said(tmp_path: Path) -> None:
    text = """
    $ hopplus list presets
    ppo   PPO self-play ...
    nothing of this kind
    hopplus list presents
    hopplus train ppo --stepz 1e6 --name a
    hopplus train ppo --steps many --name a
    hopplus evaluate --players stag,stag,hare,nobody

```python
1 / 0
```

Also `make nothing` and `pytest tests/test_docs.py -k no_such_test`.
"""
    text = text.replace("    hopplus", "\n\nThen:\n\n    hopplus")
    shown, preset, option, value, player, python, make, pytests = problems(text, tmp_path)
    assert "nothing of this kind" in shown
    assert "presents" in preset
    assert "--stepz" in option
    assert "many" in value
    assert "nobody" in player
    assert "ZeroDivisionError" in python
    assert "No rule to make target" in make
    assert "no_such_test" in pytests


def test_what_is_right_passes(tmp_path: Path) -> None:
    text = """
    $ hopplus evaluate --players stag,stag,hare,random --episodes 10000
    ┃ seat ┃ player ┃  return ± 95% ┃ stags ┃ hares ┃
    │    0 │ stag   │ 4.953 ± 0.008 │ 0.994 │ 0.000 │
    ...
    joint return 11.6 ± 0.009 of 12 at best (96.9%); ...

`hopplus evaluate` is a name, and `hopplus evaluate --help` a command.

```python
number = 1
```

```python
assert number == 1
```
"""
    assert problems(text, tmp_path) == []


def test_what_another_document_makes_is_made_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = {
        Path("a.md"): steps_of("    hopplus collect --players stag --out data/mix"),
        Path("b.md"): steps_of("    hopplus pretrain world --data data/mix --name world"),
    }
    ran: list[list[str]] = []

    def run(self: Runner, words: list[str]) -> Ended:
        ran.append(words)
        for name in ("data/mix", "runs/world")[: len(ran)]:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        return Ended(0, "done", "")

    monkeypatch.setattr(Runner, "_run", run)
    elsewhere = {step.words for step in documents[Path("a.md")] if isinstance(step, Command)}
    runner = Runner(tmp_path, make_makers(documents), elsewhere=elsewhere)
    assert list(run_document(documents[Path("b.md")], runner)) == []
    assert [words[1] for words in ran] == ["collect", "pretrain"]
    (tmp_path / "other").mkdir()
    other = Runner(tmp_path / "other", {}, elsewhere=elsewhere)
    assert list(run_document(documents[Path("a.md")], other)) == []  # the same is not run again
    assert len(ran) == 2


def test_nothing_is_used_before_the_document_makes_it() -> None:
    for path, steps in read_documents().items():
        assert used_before_made(steps) == [], path.name
    steps = steps_of("    hopplus report runs/a\n    hopplus train ppo --name a")
    assert used_before_made(steps) == ["line 1: runs/a"]


def test_files_that_are_named_must_be_there(tmp_path: Path) -> None:
    command = command_of("hopplus report runs/a --out page.html   # writes runs/a/other.html")
    wrong = missing_files(command, "everything is in found.json", tmp_path)
    assert [each.split()[0] for each in wrong] == [
        "found.json",
        "page.html",
        "runs/a",
        "runs/a/other.html",
    ]
    known = command_of("hopplus list presets   # see docs/rules.md")
    assert missing_files(known, "", tmp_path) == []
    assert missing_files(command_of("make demo"), "writes demo/a.gif", tmp_path) == []


def test_figures_may_differ_from_those_shown_and_words_may_not() -> None:
    said = "seat 0: 1.5 ± 0.1,\n  hash 6332b416f7b5, 26,880 steps; -3e-05 more. The end"
    assert missing_output("seat 1: 2 ± 0.25, hash\n365bbf9e0b2f, 7 steps ... The end", said) == []
    (wrong,) = missing_output("seat 1: 2 ± 0.25, HASH 1", said)
    assert "'HASH 0'" in wrong
    assert missing_output("from 0 to 5, foreseen", "from 0 to 157, foreseen") == []
    assert missing_output("The end ... seat 0", said)  # in this order


def test_pages_are_looked_at(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = "words " * 50
    page.write_text(f"<p>{text}</p><script>let x = undefined</script>")
    assert wrong_page(page) == []
    page.write_text(f"<p>{text} a mean of nan</p>")
    assert ["nan" in each for each in wrong_page(page)] == [True]
    page.write_text(f'<p>{text}</p><script type="application/json">[NaN]</script>')
    assert ["no browser reads" in each for each in wrong_page(page)] == [True]
    page.write_text("<html></html>")
    assert ["says little" in each for each in wrong_page(page)] == [True]


def test_a_command_that_says_nothing_or_ends_badly(tmp_path: Path) -> None:
    def leave() -> int:
        raise SystemExit("no")

    def speak() -> int:
        print("x")
        return 0

    assert captured(leave, tmp_path).status == 1
    assert captured(speak, tmp_path) == Ended(0, "x\n", "")
