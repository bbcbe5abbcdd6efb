"""Report pages in a real browser: nothing fails, everything is reached, figures are shown."""

import json
import os
import shutil
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest

from colsynth.cli.main import run

OUT = Path(__file__).parents[2] / "out"
SHOTS, AXE = OUT / "report", OUT / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium")
SAMPLE = Path("/work/shared/samples/xml/rccl/allreduce-allpairs-8n-ll-32tb.xml")
MOST_BYTES = 3 * 10**6

QUICK = ["--sizes", "64KiB,16MiB,1GiB", "--against", "none"]
PAGES = {
    "dgx-a100": ["dgx-a100", "-c", "allreduce", "-r", "msccl", "-O", "0", *QUICK],
    "mi250": ["mi250", "--nodes", "2", "-c", "allgather", "-r", "rccl", "-O", "0", *QUICK],
    "ndv2": ["ndv2", "-c", "alltoall", "-r", "msccl", "-O", "0", *QUICK],
    "torus": ["torus:3x3", "-c", "allgather", "-r", "msccl", "-a", "ten", *QUICK],
    "third-party": [str(SAMPLE), "-t", "mi300x", "-r", "rccl", *QUICK],
    "bundle": ["bundle", "-t", "ring:4", *QUICK],
    "survey": ["survey", "-t", "ring:4"],
    "compare": ["compare.json"],
}  # fmt: skip

CHECKED = ("ndv2", "third-party", "bundle", "survey", "compare")
"""Pages that axe-core looks at in light; it takes a minute for a machine of 384 links."""

VIEWS = ((1280, "light"), (390, "light"), (390, "dark"), (1920, "dark"))
"""Widths in pixels and colours; every page is drawn in one of them, in turn."""

NEEDED = ("vl_convert", "playwright")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(find_spec, NEEDED)), reason="needs colsynth[report,test]"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
]


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    """A folder with a small bundle, a small survey and a small comparison."""
    place = tmp_path_factory.mktemp("report")
    before = Path.cwd()
    os.chdir(place)
    few = ["--sizes", "64KiB,64MiB", "--budget", "4", "--jobs", "1"]
    words = ["tune", "ring:4", "-c", "allreduce", "-r", "msccl", "-o", "bundle", *few]
    assert run(words) == 0
    words = ["survey", "ring:4", "-c", "allgather", "--jobs", "1", "-o", "survey"]
    assert run(words) == 0
    words = ["compare", "ring:4", "-c", "allgather", "--algorithms", "ring,forest", *few, "--json"]
    with redirect_stdout(StringIO()) as told:
        assert run(words) == 0
    Path("compare.json").write_text(told.getvalue())
    yield place
    os.chdir(before)


@pytest.fixture(scope="module", name="browser")
def _browser():
    """One browser for all tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        flags = ["--headless", "--no-sandbox", "--disable-gpu"]
        found = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield found
        found.close()


class Visit:
    """A page that is open, and what it complained about."""

    def __init__(self, browser, path, width=1280, scheme="light"):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(120_000)  # of milliseconds: other tests may keep it waiting
        self.faults = []
        self.page.on("console", lambda said: self.faults.append(said.text))
        self.page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.documentElement.dataset.ready")

    def data(self):
        return json.loads(self.page.locator("#data").text_content())

    def show_all(self):
        """Scroll through the page, so that every plot is drawn."""
        for plot in self.page.locator(".plot").all():
            plot.scroll_into_view_if_needed()
            plot.locator("svg").wait_for()

    def close(self):
        """Close the page; nothing may have failed in it."""
        self.context.close()
        assert self.faults == []

    def tip(self, selector):
        """Return what the page says while the pointer is on an element."""
        box = self.page.locator(selector).first
        box.scroll_into_view_if_needed()
        box.dispatch_event("pointermove", {"bubbles": True, "clientX": 50, "clientY": 50})
        return self.page.locator(".tip").text_content()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_works(name, folder, browser):
    if name == "third-party" and not SAMPLE.exists():
        pytest.skip("the sample of RCCL is not on this machine")
    path = _page(folder, name)
    assert path.stat().st_size < MOST_BYTES
    visit = Visit(browser, path)
    visit.show_all()
    _figures_are_shown(visit)
    if visit.data().get("machine"):
        _topology_answers(visit)
    if visit.data().get("schedule"):
        _replay_works(visit)
        _timeline_works(visit)
    _prints(visit)
    visit.page.set_viewport_size({"width": 390, "height": 844})
    visit.page.wait_for_timeout(100)
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visit.page.emulate_media(color_scheme="dark")
    visit.page.set_viewport_size({"width": 1920, "height": 1080})
    visit.page.wait_for_timeout(100)
    if name in CHECKED:
        _accessible(visit)
    visit.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn(name, folder, browser):
    if name == "third-party" and not SAMPLE.exists():
        pytest.skip("the sample of RCCL is not on this machine")
    path = _page(folder, name)
    _draw(browser, path, *VIEWS[list(PAGES).index(name) % len(VIEWS)])


def _draw(browser, path, width, scheme):
    """Draw a page to a file for a person to look at.

    Rarely Chromium does not finish a picture in 30 s that takes it 1 s at other times; seen
    once the window of a page had changed its size. So pages are opened anew, and once more then.
    """
    from playwright.sync_api import TimeoutError as Late

    SHOTS.mkdir(parents=True, exist_ok=True)
    picture = SHOTS / f"{path.stem}-{width}-{scheme}.png"
    for last in (False, False, True):
        visit = Visit(browser, path, width, scheme)
        visit.show_all()
        visit.page.evaluate("scrollTo(0, 0)")
        try:
            visit.page.screenshot(path=picture, full_page=True, timeout=30_000)
        except Late:
            if last:
                raise
        else:
            break
        finally:
            visit.close()
    assert picture.stat().st_size > 20_000


def _page(folder, name):
    """Return a page; tests may run in any order, and in processes of their own."""
    path = folder / f"{name}.html"
    if not path.exists():
        assert run(["report", *PAGES[name], "-o", str(path)]) == 0
    return path


def _figures_are_shown(visit):
    """Figures of the page are those of its values."""
    data, text = visit.data(), visit.page.locator("main").inner_text()
    if "bound" in data:
        assert f"exactly {data['bound']['algbw']} GB/s" in text
        assert all(cut["equation"] in text for cut in data["cuts"])
    for point in data.get("simulation", {"points": []})["points"]:
        if point["selected"]:
            cell = visit.page.locator(f"[data-algbw='{point['size_bytes']}']").text_content()
            assert cell == f"{point['algbw_gb_per_s']:.3f}"
    for limit in data.get("limits", []):
        assert str(limit["used"]) in text
    assert all(entry["sha256"] in text for entry in data["inputs"])
    assert data["command"] in text


def _topology_answers(visit):
    """Hovering and arrow keys tell names and numbers."""
    machine = visit.data()["machine"]
    source, target, rate, _ = machine["links"][0]
    said = visit.tip("#topology-stage [data-link='0']")
    assert f"{machine['nodes'][source]['name']} → {machine['nodes'][target]['name']}" in said
    assert f"{rate:g}" in said
    assert machine["nodes"][0]["name"] in visit.tip("#topology-stage [data-node='0']")
    visit.page.locator("#topology-stage svg").focus()
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("ArrowRight")
    told = visit.page.locator("#topology-stage-said").text_content()
    assert machine["nodes"][1]["name"] in told


def _replay_works(visit):
    """Play, pause, step, scrub and choose by keyboard; the end is complete."""
    page, played = visit.page, visit.data()["schedule"]
    status = page.locator("[data-part=status]")
    page.locator("[data-part=next]").focus()
    page.keyboard.press("Enter")
    started = sum(send[0] <= _time(page) < send[1] for send in played["sends"])
    assert f"{started} transfers" in status.text_content()
    assert page.locator("#schedule-stage .dot").count() == min(started, 600)
    page.locator("#schedule-stage svg").focus()
    page.keyboard.press("Space")
    page.wait_for_function("colsynth.replay.timer")
    page.keyboard.press("Space")
    assert page.locator("[data-part=play]").text_content() == "Play"
    page.locator("[data-part=scrub]").fill(str(played["time_ns"] // 2))
    assert _time(page) == played["time_ns"] // 2
    page.locator("[data-part=chunk]").select_option(index=1)
    page.locator("[data-part=chunk]").select_option(index=0)
    page.locator("[data-part=scrub]").focus()
    page.keyboard.press("End")
    if played["complete"]:
        assert "outputs 100 % full" in status.text_content()
    page.locator("#buffers").hover(position={"x": 2, "y": 2})
    contributions = f"{played['needed']} of {played['needed']} contribution"
    assert contributions in page.locator(".tip").text_content()
    page.locator("[data-part=scrub]").fill(str(int(played["time_ns"] * 0.45)))


def _time(page):
    return page.evaluate("colsynth.replay.time")


def _timeline_works(visit):
    for choice in ("links", "0", "critical"):
        visit.page.locator("#timeline-of").select_option(choice)
        assert visit.page.locator(
            "#timeline svg path[aria-label], #timeline svg .mark-rect path"
        ).count()


def _prints(visit):
    """All plots are drawn on paper, and controls are not."""
    visit.page.emulate_media(media="print")
    assert not visit.page.locator("nav").is_visible()
    assert len(visit.page.pdf()) > 20_000
    visit.page.emulate_media(media="screen")


def _accessible(visit):
    if not AXE.exists():
        return
    visit.page.evaluate(AXE.read_text())
    found = visit.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = {
        item["id"]: [node["html"][:160] for node in item["nodes"][:3]]
        for item in found["violations"]
        if item["impact"] in {"serious", "critical"}
    }
    assert bad == {}


def test_dark_and_wide_views_are_accessible(folder, browser):
    path = _page(folder, "ndv2")
    for width, scheme in ((390, "dark"), (1920, "light"), (1920, "dark")):
        visit = Visit(browser, path, width, scheme)
        visit.show_all()
        visit.page.locator("[data-part=scrub]").fill("100000")
        if scheme == "dark":
            _accessible(visit)
        visit.close()
