"""The page in a real browser: charts, replay, keys, no network, nothing evil, any width."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from browser import Opened, expect
from fake_runs import fake_replay, write_run
from hopplus.report.html import write_page
from hopplus.report.page import Page
from hopplus.report.pages.curves import Curved, curves_section
from hopplus.report.pages.logged import Logged
from hopplus.report.pages.runs import runs_page
from hopplus.report.pages.summary import summarise
from hopplus.report.translations import Language, Translations
from hopplus.runs.folder import open_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPT = "<script>alert(1)</script>"
SCROLL = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of an evil run, alone and beside another, in two languages."""
    folder = tmp_path_factory.mktemp("pages")
    paths = [write_run(folder / "a", updates=40, seeds=3), write_run(folder / "b", preset="ppo")]
    one, two = summarise([open_run(path) for path in paths])
    one = replace(one, name=SCRIPT)
    replays = [(SCRIPT, fake_replay(SCRIPT)), ("b", fake_replay(goals="inferred"))]
    replays[0][1]["kinds"][1] = replays[0][1]["episodes"][1]["label"] = SCRIPT
    languages: list[Language] = ["en", "zh"]
    for language in languages:
        page = runs_page([one], SCRIPT, language, [], replays[:1])
        write_page(folder / f"one-{language}.html", page)
    write_page(folder / "two.html", runs_page([one, two], "", "en", [], replays))
    return folder


@pytest.fixture
def opened(browser: "Browser", folder: Path) -> Iterator[Opened]:
    """The page of one run; whatever a test does with it, nothing may go wrong."""
    opened = Opened(browser, folder / "one-en.html", viewport={"width": 1600, "height": 900})
    yield opened
    assert opened.wrong == []
    assert opened.asked == [(folder / "one-en.html").as_uri()]
    opened.close()


def test_charts_appear(opened: Opened) -> None:
    titles = opened.tab.locator(".chart h3").all_text_contents()
    for title in ("Return", "Value loss by source", "Opponent accuracy", "World error"):
        assert title in titles
    assert "Goal hit ratio" in titles
    curves = opened.tab.locator(".chart:first-child .curve:not(.swatch *)")
    assert curves.count() == 5  # the mean and four seats
    box = curves.first.bounding_box()
    assert box is not None
    assert box["width"] > 1000
    assert box["height"] > 50
    assert opened.tab.locator(".chart:first-child .band").count() == 5


def test_nothing_from_a_run_is_run(opened: Opened) -> None:
    assert opened.tab.locator("h1").text_content() == f"hopplus: {SCRIPT}"
    for place in (".own h4", ".pick button", "code", "th"):
        assert SCRIPT in " ".join(opened.tab.locator(place).all_text_contents())
    assert opened.tab.locator("body script:not([type])").count() == 1  # the page's own
    assert SCRIPT in str(opened.tab.locator("svg.board").get_attribute("aria-label"))


def test_scripts_put_into_it_do_not_run(browser: "Browser", folder: Path) -> None:
    """Even if text got in as HTML, the browser is told to run nothing else."""
    path = folder / "injected.html"
    text = (folder / "one-en.html").read_text(encoding="utf-8")
    path.write_text(text.replace("<h1>", "<script>window.ran = 1</script><h1>"), encoding="utf-8")
    opened = Opened(browser, path)
    assert opened.tab.evaluate("window.ran") is None
    assert "Content Security Policy" in " ".join(opened.wrong)
    assert opened.tab.locator(".chart").count() > 5  # its own script ran
    opened.close()


def test_the_slider_moves_the_pieces(opened: Opened) -> None:
    slider = opened.tab.get_by_label("moment", exact=True)
    assert [opened.piece(seat) for seat in range(3)] == [(0, 0), (1, 1), (2, 3)]
    slider.fill("2")
    assert [opened.piece(seat) for seat in range(3)] == [(0, 2), None, (2, 3)]
    assert "step 2 of 3; seat 1 gets 1" in str(opened.tab.locator(".clock").text_content())
    slider.fill("0")
    assert opened.piece(1) == (1, 1)


def test_keys_move_pick_and_play(opened: Opened) -> None:
    opened.tab.keyboard.press("ArrowRight")  # without any focus
    assert opened.piece(0) == (0, 1)
    opened.tab.locator(".replay").focus()
    opened.tab.keyboard.press("ArrowLeft")
    assert opened.piece(0) == (0, 0)
    opened.tab.keyboard.press("End")
    assert opened.piece(0) == (0, 3)
    opened.tab.keyboard.press("Home")
    opened.tab.keyboard.press("1")
    assert opened.tab.locator(".pick button[aria-pressed='true'] .token").text_content() == "1"
    opened.tab.keyboard.press("9")  # there is no such seat
    assert opened.tab.locator(".own .token").text_content() == "1"
    opened.tab.get_by_label("speed").select_option(index=4)
    opened.tab.locator(".replay").focus()
    opened.tab.keyboard.press(" ")
    opened.tab.get_by_label("pause").wait_for()
    opened.tab.get_by_label("play", exact=True).wait_for()  # it stops at the end
    assert opened.piece(0) == (0, 3)


def test_a_seat_is_looked_through(opened: Opened) -> None:
    tab = opened.tab
    assert tab.locator(".value").text_content() == "value 2.5"
    own = tab.locator(".own .share.taken")
    assert own.all_text_contents() == ["right ●0.800", "0.700"]  # policy, visits
    others = tab.locator(".looks > .other")
    first = str(others.nth(0).text_content())
    assert "Believed to be after" in first
    assert "stag0.750" in first
    assert "stay ●0.600" in first
    assert "did: predicted" in first
    assert "down ●0.500" in str(others.nth(1).text_content())
    assert tab.locator(".imagined").count() == 3  # everyone's way along the line
    tab.get_by_label("imagined line").uncheck()
    assert tab.locator(".imagined").count() == 0
    tab.locator(".replay .pick button").nth(2).click()  # scripted
    assert tab.locator(".looks").text_content() == "Nothing to show of this seat at this moment."
    tab.get_by_label("episode").select_option(index=1)
    assert tab.locator(".clock").text_content() == "step 0 of 2"


def test_curves_are_pointed_at_and_chosen(opened: Opened) -> None:
    chart = opened.tab.locator(".chart").first
    curves = chart.locator(".plot .curve")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".plot").bounding_box()
    assert box is not None
    opened.tab.mouse.move(box["x"] + 700, box["y"] + 100)
    tip = chart.locator(".tip")
    tip.wait_for()
    assert len(tip.locator("div").all()) == 6  # the step, the mean, four seats
    assert "mean over seats" in str(tip.text_content())
    chart.get_by_role("button", name="seat 2").click()
    assert curves.count() == 4
    rough = curves.first.get_attribute("d")
    opened.tab.get_by_label("smoothing").fill("5")
    opened.tab.get_by_text("11 points").wait_for()
    expect(curves.first).not_to_have_attribute("d", str(rough))
    opened.tab.get_by_label("bands").uncheck()
    expect(chart.locator(".band")).to_have_count(0)


def test_curves_are_zoomed_by_mouse_and_keys(opened: Opened) -> None:
    chart = opened.tab.locator(".chart").first
    plot = chart.locator(".plot")
    chart.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None

    def points() -> int:
        return str(plot.locator(".curve").first.get_attribute("d")).count("L") + 1

    assert points() == 40
    opened.tab.mouse.move(box["x"] + 300, box["y"] + 100)
    opened.tab.mouse.down()
    opened.tab.mouse.move(box["x"] + 600, box["y"] + 100)
    opened.tab.mouse.up()
    zoomed = points()
    assert zoomed < 15
    plot.focus()
    opened.tab.keyboard.press("+")
    assert points() < zoomed
    opened.tab.keyboard.press("0")
    assert points() == 40
    opened.tab.mouse.move(0, 0)
    opened.tab.keyboard.press("ArrowRight")
    assert "4,096" in str(chart.locator(".tip").text_content())
    opened.tab.keyboard.press("ArrowRight")
    assert "8,192" in str(chart.locator(".tip").text_content())


@pytest.mark.parametrize("wide", [400, 1600])
def test_runs_overlaid_at_any_width(browser: "Browser", folder: Path, wide: int) -> None:
    opened = Opened(browser, folder / "two.html", viewport={"width": wide, "height": 900})
    tab = opened.tab
    assert tab.evaluate(SCROLL) == wide
    first = tab.locator(".chart").first
    assert first.locator(".plot .curve").count() == 2  # a mean each
    tab.locator(".runs button").nth(0).click()
    expect(first.locator(".plot .curve")).to_have_count(1)
    box = first.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= wide
    tab.get_by_label("run", exact=True).select_option("b")
    cards = tab.locator(".other")  # inferred goals are told in kinds, not in numbers
    assert "stag0.600" in (cards.nth(0).text_content() or "")
    assert cards.nth(0).locator("details").get_attribute("open") is None
    expect(tab.locator("rect.aim")).to_have_count(1)  # and where they are
    tab.get_by_label("predicted targets").uncheck()
    expect(tab.locator("rect.aim")).to_have_count(0)
    text = tab.locator(".chart text").first.evaluate("text => text.getBoundingClientRect().height")
    assert text > 9  # can be read
    tab.set_viewport_size({"width": 700, "height": 900})  # drawn anew when it changes
    tab.locator(".plot").first.scroll_into_view_if_needed()  # where it can be seen
    expect(tab.locator(".plot").first).to_have_attribute("viewBox", re.compile("^0 0 6[0-9]{2} "))
    assert tab.evaluate(SCROLL) == 700
    assert opened.wrong == []
    opened.close()


def test_chinese_dark_and_paper(browser: "Browser", folder: Path) -> None:
    opened = Opened(browser, folder / "one-zh.html", color_scheme="dark")
    assert "回报" in opened.tab.locator(".chart h3").all_text_contents()
    opened.tab.get_by_label("播放", exact=True).click()
    opened.tab.get_by_label("暂停").wait_for()
    assert str(opened.tab.locator(".value").text_content()).startswith("价值")
    style = "getComputedStyle(document.body).backgroundColor"
    assert opened.tab.evaluate(style) == "rgb(22, 25, 29)"
    opened.tab.emulate_media(color_scheme="light")
    assert opened.tab.evaluate(style) == "rgb(255, 255, 255)"
    opened.tab.emulate_media(color_scheme="dark", media="print")
    assert opened.tab.evaluate(style) == "rgb(255, 255, 255)"  # paper is white
    opened.tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    boxes = opened.tab.locator(".plot")
    assert str(boxes.first.get_attribute("viewBox")).startswith("0 0 700 ")
    assert str(boxes.last.get_attribute("viewBox")).startswith("0 0 340 ")
    assert opened.tab.get_by_role("slider").count() == 0  # nothing to handle there
    assert opened.wrong == []
    opened.close()


def test_large_pages_stay_smooth(browser: "Browser", tmp_path: Path) -> None:
    """Five runs of 2,000 points each in 14 charts: all are drawn anew in well under a second."""
    noise = np.random.default_rng(0).normal(size=(2000, 10, 4))
    names = ["policy_loss", "value_loss", "entropy", "kl", "explained", "gradient_norm"]
    names += [f"{part}/loss/{n}" for part in ("world", "goal", "opponent") for n in range(4)]
    names += ["world/error", "goal/hit", "real/return", "real/value"]
    values = dict.fromkeys(names, noise) | {
        "return_sum": 10 * noise,
        "episodes": np.full((2000, 10), 10.0),
    }
    logged = Logged(np.arange(2000.0), False, values, 0, {})
    section = curves_section([Curved(f"run {n}", logged) for n in range(5)], Translations())
    write_page(tmp_path / "large.html", Page("large", "large", "good", sections=[section]))
    opened = Opened(browser, tmp_path / "large.html", viewport={"width": 1600, "height": 900})
    charts = opened.tab.locator(".chart")
    charts.nth(3).scroll_into_view_if_needed()  # with four lines of each run
    redrawn, pointed = opened.tab.evaluate(
        """async () => {
            const slider = document.querySelector("input[type=range]");
            const plot = document.querySelectorAll(".plot")[3], box = plot.getBoundingClientRect();
            const time = async (times, act) => {
                const began = performance.now();
                for (let number = 1; number <= times; number += 1) {
                    act(number);
                    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                }
                return (performance.now() - began) / times;
            };
            const smooth = (value) => {
                slider.value = value;
                slider.dispatchEvent(new Event("input"));
            };
            const at = (number) => ({ clientX: box.left + 50 + 9 * number, clientY: box.top + 50 });
            const move = (number) => new PointerEvent("pointermove", at(number));
            const point = (number) => plot.dispatchEvent(move(number));
            return [await time(5, smooth), await time(20, point)];
        }"""
    )
    assert charts.nth(3).locator(".tip div").count() == 21  # the step, and every line
    print(f"{redrawn:.0f} ms to draw what is seen anew, {pointed:.0f} ms to point at it")
    assert redrawn < 1000
    assert pointed < 200
    assert opened.wrong == []
    opened.close()
