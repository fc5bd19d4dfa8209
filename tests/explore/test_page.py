"""The page in a browser: the written file and the one at / of a service, against the library (make test-page)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zoo
from explored_texts import HOSTILE, KEYS, SIZES, TEXTS, VECTORS, built
from in_thread import answering
from letters import Letters
from running import service

from antisparse import Index
from antisparse.datasets import write_vectors
from antisparse.explore import Explorer, Originals, other_sizes, write_page
from antisparse.explore.explorer import METHODS, Asked
from antisparse.serve import Limits, Tokens, create_app

PHONE = {"width": 390, "height": 844}
TOKEN = "read-token-0123456789"


@dataclass
class Seen:
    """A page, and what it said and asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def pick(self, key: str) -> None:
        """Find an item by its key, by keys alone."""
        self.page.keyboard.press("Escape")
        self.page.locator("#find").focus()
        self.page.locator("#find").fill(key)
        self.page.wait_for_selector("#options li")
        self.page.wait_for_function("key => document.querySelector('#options li').innerText.includes(key)", arg=key)
        self.page.keyboard.press("ArrowDown")
        self.page.keyboard.press("Enter")
        self.settled(TEXTS[KEYS.index(key)])

    def settled(self, text: str) -> None:
        """Wait until the query is this text."""
        self.page.wait_for_function(
            "text => document.getElementById('query-text').textContent === text",
            arg=text if len(text) <= 600 else text[:600] + "…",
        )

    def columns(self) -> dict[str, Any]:
        """What is shown: ids, those marked as false, those listed as missed; or the words in their place."""
        return self.page.evaluate("""() => Object.fromEntries(
            Array.from(document.querySelectorAll(".column"), column => {
            const ids = (selector) => Array.from(column.querySelectorAll(selector), one => Number(one.dataset.id));
            const why = column.querySelector(".why");
            const chips = Array.from(column.querySelectorAll(".chip"), chip => chip.getAttribute("aria-label"));
            return [column.dataset.method, why ? {why: why.textContent} : {ids: ids("ol .entry"),
                distances: Array.from(column.querySelectorAll("ol [title=distance]"), one => Number(one.textContent)),
                wrong: ids("ol .entry.false"), right: ids("ol .entry.true"), missed: ids(".missed .entry"), chips}];
        }))""")

    def wide(self) -> int:
        """How much wider than the window the page is."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@contextmanager
def seen(browser: Any, url: str, **options: Any) -> Iterator[Seen]:
    """A page that is loaded; at the end it must have said nothing, and asked no one else."""
    context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **options})
    try:
        page = Seen(context.new_page())
        page.page.set_default_timeout(20_000)
        page.page.on("console", lambda message: page.said.append(message.text))
        page.page.on("pageerror", lambda error: page.said.append(str(error)))
        page.page.on("request", lambda request: page.asked.append(request.url))
        page.page.goto(url)
        yield page
        assert page.said == []
        base = url if url.startswith("file:") else url.rstrip("/") + "/"
        assert all(one.startswith((base, "data:")) for one in page.asked), page.asked
        assert page.page.evaluate("window.hacked") is None
    finally:
        context.close()


def check(found: dict[str, Any], explorer: Explorer, size: int, asked: Asked) -> None:
    """All four columns are those of the library, and misses are marked where there are misses."""
    exact = explorer.exact(asked, 10).ids[0].tolist()
    assert found["exact"]["ids"] == exact
    chips = []
    for method in METHODS:
        column, shown = explorer.column(size, method, asked, 10), found[method]
        if column.ids is None:
            assert shown == {"why": column.why}
            continue
        ids = column.ids[0].tolist()
        assert shown["ids"] == ids
        assert shown["distances"] == pytest.approx(column.distances[0].tolist(), rel=6e-3, abs=1e-6)
        assert shown["wrong"] == [i for i in ids if i not in exact]
        assert shown["right"] == [i for i in ids if i in exact]
        assert shown["missed"] == [i for i in exact if i not in ids]
        chips.append((method, ids))
    names = {"hamming": "NN_b", "asymmetric": "NN_a", "reconstruction": "NN_e"}
    said = [f"{names[method]} {'found' if i in ids else 'missed'} it" for i in exact for method, ids in chips]
    assert found["exact"]["chips"] == said


@pytest.fixture(scope="module")
def written(explorer: Explorer, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("written") / "page.html"
    write_page(path, explorer, explorer.index.ids, "<i>titles</i> & more")
    return path.as_uri()


@contextmanager
def running(explorer: Explorer, **options: Any) -> Iterator[str]:
    """The application of what is explored, as it answers."""
    others = [one for one in explorer.sizes if one is not explorer.index]
    app = create_app(explorer.index, originals=explorer.originals, others=others, name="live", **options)
    with answering(app) as url:
        yield url


@pytest.fixture(scope="module")
def live(explorer: Explorer) -> Iterator[str]:
    with running(explorer) as url:
        yield url


@pytest.fixture(params=["written", "live"])
def url(request: pytest.FixtureRequest, browser: Any) -> str:
    """Either page: they are one."""
    return request.getfixturevalue(request.param)


def test_items_are_found_and_the_columns_are_the_library_s(url: str, browser: Any, explorer: Explorer) -> None:
    with seen(browser, url) as page:
        for row in range(0, len(KEYS), 23):
            page.pick(KEYS[row])
            check(page.columns(), explorer, 1, explorer.items(np.array([row])))


def test_the_slider_shows_codes_of_other_sizes(url: str, browser: Any, explorer: Explorer) -> None:
    with seen(browser, url) as page:
        page.pick("k33")
        asked = explorer.items(np.array([33]))
        page.page.locator("#slider").focus()
        for key, size in (("ArrowRight", 2), ("Home", 0), ("ArrowRight", 1)):
            page.page.keyboard.press(key)
            page.page.wait_for_function(
                "size => document.getElementById('bytes').textContent === size", arg=str(SIZES[size])
            )
            check(page.columns(), explorer, size, asked)
            exact = explorer.exact(explorer.items(explorer.index.ids), 10)
            for row, method in enumerate(METHODS):
                recall = explorer.recall(explorer.column(size, method, explorer.items(explorer.index.ids), 10), exact)
                cells = page.page.locator("#recall tbody tr").nth(row).locator("td").all_inner_texts()
                assert [float(cell) for cell in cells] == pytest.approx(list(recall.values()), abs=5.1e-4)
            assert page.page.locator("#slider").get_attribute("aria-valuetext") == f"{SIZES[size]} bytes"


def test_hostile_texts_are_texts(url: str, browser: Any) -> None:
    with seen(browser, url) as page:
        for key, text in HOSTILE.items():
            page.pick(key)
            shown = page.page.evaluate("document.getElementById('query-text').textContent")
            assert shown == (text if len(text) <= 600 else text[:600] + "…")
            assert page.wide() <= 0, key
        assert page.page.locator("img, b b, main script").count() == 0
        if url.startswith("file:"):
            assert page.page.locator("#name").text_content() == "<i>titles</i> & more"


def test_bits_that_differ_are_lit(url: str, browser: Any, explorer: Explorer) -> None:
    count = """() => Array.from(document.querySelectorAll("#compared-code .lit, #compared-code .lit-off"),
        one => (one.getAttribute("d") || "").split("M").length - 1).reduce((a, b) => a + b, 0)"""
    with seen(browser, url) as page:
        page.pick("k20")
        code = explorer.index.codec.encode(VECTORS[20:21])[0]
        for place in (0, 3, 9):
            button = page.page.locator(".column[data-method=hamming] ol .entry").nth(place)
            button.click()
            other = int(button.get_attribute("data-id"))
            differ = np.unpackbits(code ^ explorer.index.codes([other])[0])
            bits = explorer.index.codec.symbols.n_bits
            beside = int(differ[bits:].any())  # the bias is one unit
            assert page.page.evaluate(count) == differ[:bits].sum() + beside
            assert f"{differ[:bits].sum()} of {bits} signs" in page.page.locator("#compared-code p").text_content()
            assert button.locator("xpath=self::*[contains(@class, 'chosen')]").count() == 1
        page.page.locator("#ask-compared").click()
        page.settled(TEXTS[other])


@pytest.mark.parametrize("key", ["k3", "one word", "right to left"])
def test_a_phone_needs_no_sideways_scroll(url: str, browser: Any, key: str) -> None:
    with seen(browser, url, viewport=PHONE) as page:
        page.pick(key)
        assert page.wide() <= 0
        edges = page.page.evaluate("""() => Array.from(document.querySelectorAll("main *"))
            .filter(one => !one.closest("[hidden], .hidden, svg") && one.getBoundingClientRect().right > innerWidth + 1)
            .map(one => one.className || one.tagName)""")
        assert edges == []


def luminance(colour: str) -> float:
    red, green, blue = (int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(written: str, browser: Any, scheme: str) -> None:
    with seen(browser, written, color_scheme=scheme) as page:
        page.pick("k3")
        for selector in ("body", ".entry .said", ".tag-true", "#find", ".score"):
            ink, paper = page.page.evaluate(
                """selector => { let one = document.querySelector(selector); const ink = getComputedStyle(one).color;
                for (; one; one = one.parentElement) { const paper = getComputedStyle(one).backgroundColor;
                if (paper !== "rgba(0, 0, 0, 0)") return [ink, paper]; } }""",
                selector,
            )
            difference = luminance(paper) - luminance(ink)
            assert difference > 80 if scheme == "light" else difference < -80, selector


def test_all_can_be_done_by_keys(written: str, browser: Any, explorer: Explorer) -> None:
    with seen(browser, written) as page:
        keys, place = (
            page.page.keyboard,
            "document.activeElement.closest('.column').dataset.method + ' ' + document.activeElement.dataset.id",
        )
        keys.press("/")
        assert page.page.evaluate("document.activeElement.id") == "find"
        keys.type("harbour 4")
        page.page.wait_for_selector("#options li")
        assert page.page.locator("#find").get_attribute("aria-expanded") == "true"
        keys.press("ArrowDown")
        keys.press("ArrowDown")
        active = page.page.locator("#find").get_attribute("aria-activedescendant")
        chosen = page.page.locator(f"#{active}")
        assert chosen.get_attribute("aria-selected") == "true"
        text = chosen.locator("div").first.text_content()
        keys.press("Enter")
        page.settled(text)
        assert page.page.locator("#options").is_hidden()
        row = TEXTS.index(text)
        columns = [explorer.column(1, method, explorer.items(np.array([row])), 10).ids[0] for method in METHODS]
        for _ in range(12):  # past the buttons, into the lists
            keys.press("Tab")
            if page.page.evaluate("document.activeElement.classList.contains('entry')"):
                break
        assert page.page.evaluate(place) == f"hamming {columns[0][0]}"
        keys.press("ArrowDown")
        assert page.page.evaluate(place) == f"hamming {columns[0][1]}"
        keys.press("ArrowRight")
        keys.press("ArrowRight")
        assert page.page.evaluate(place) == f"reconstruction {columns[2][1]}"
        assert TEXTS[columns[2][1]][:100] in page.page.locator("#compared-text").text_content()
        keys.press("Enter")
        page.settled(TEXTS[columns[2][1]])


def test_every_picture_and_field_has_a_name(url: str, browser: Any) -> None:
    with seen(browser, url) as page:
        page.pick("k3")
        nameless = page.page.evaluate("""() => Array.from(document.querySelectorAll(
            "svg:not([aria-hidden]), input, textarea, [role=listbox], section, nav"))
            .filter(one => !one.hasAttribute("aria-label") && !(one.labels && one.labels.length))
            .map(one => one.outerHTML.slice(0, 80))""")
        assert nameless == []


def test_codebooks_say_that_two_searches_are_none(codebooks: Explorer, browser: Any, tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", codebooks, codebooks.index.ids)
    with seen(browser, (tmp_path / "page.html").as_uri()) as page:
        page.pick("k8")
        found = page.columns()
        assert all("does not exist" in found[method]["why"] for method in ("hamming", "asymmetric"))
        check(found, codebooks, 0, codebooks.items(np.array([8])))
        other = found["reconstruction"]["ids"][0]
        page.page.locator(f".column[data-method=reconstruction] [data-id='{other}']").click()
        one, two = codebooks.index.codes([8])[0], codebooks.index.codes([other])[0]
        nibbles = np.stack([(one ^ two) >> 4, (one ^ two) & 15], 1).reshape(-1)[: codebooks.index.codec.symbols.count]
        assert (
            f"{(nibbles > 0).sum()} of {len(nibbles)} codewords" in page.page.locator("#compared-code p").text_content()
        )


def test_without_originals_nothing_is_claimed(index: Any, browser: Any, tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", Explorer(index), index.ids)
    with seen(browser, (tmp_path / "page.html").as_uri()) as page:
        page.pick("k8")
        found = page.columns()
        assert "--vectors" in found["exact"]["why"] and "--vectors" in page.page.locator("#recall").text_content()
        for method in METHODS:
            ids = index.search(index.reconstruct([8]), 11, method=method)[1][0]
            assert found[method]["ids"] == [i for i in ids.tolist() if i != 8][:10]
            assert found[method]["wrong"] == found[method]["missed"] == []
        assert "not at hand" in page.page.locator("#query-note").text_content()


def test_a_vector_is_pasted(live: str, browser: Any, explorer: Explorer) -> None:
    rng = np.random.default_rng(0)
    with seen(browser, live) as page:
        page.page.get_by_label("A vector", exact=True).check()
        for q in (rng.random(24), VECTORS[7] + 0.05):
            page.page.locator("#vector").fill("[" + ", ".join(map(repr, q.tolist())) + "]")
            page.page.locator("#by-vector button").click()
            page.settled("A vector of 24 numbers")
            page.page.wait_for_function(
                "id => document.querySelector('.column[data-method=exact] .entry').dataset.id === id",
                arg=str(explorer.exact(Asked(q[None]), 1).ids[0, 0]),
            )
            check(page.columns(), explorer, 1, Asked(q[None]))
        for text, said in (
            ("1 2 x", "“x” is not a number"),
            ("1 2 3", "There are 3 numbers"),
            ("0 " * 24, "is zero"),
        ):
            page.page.locator("#vector").fill(text)
            page.page.locator("#by-vector button").click()
            page.page.wait_for_function(
                "said => document.getElementById('notice').textContent.includes(said)", arg=said
            )
        page.said = [one for one in page.said if "400" not in one]  # Chromium's own line on what the service refused
        assert page.page.get_by_label("A text", exact=True).is_hidden()  # no model


def test_a_text_is_asked_where_there_is_a_model(browser: Any) -> None:
    index = built(model=Letters())
    explorer = Explorer(index, Originals.of(index, VECTORS))
    with running(explorer) as url, seen(browser, url) as page:
        page.page.get_by_label("A text", exact=True).check()
        for text in ("a mapped harbour", "<script>window.hacked = 2</script>"):
            page.page.locator("#text").fill(text)
            page.page.keyboard.press("Enter")
            page.settled(text)
            check(page.columns(), explorer, 0, Asked(Letters().encode([text])))


def test_a_token_is_asked_for_and_kept_in_memory_alone(explorer: Explorer, browser: Any) -> None:
    with running(explorer, tokens=Tokens(read=(TOKEN,)), limits=Limits(seconds=20)) as url:
        with seen(browser, url) as page:
            for given, works in (("wrong-token-0123456789", False), (TOKEN, True)):
                page.page.wait_for_selector("#token", state="visible")
                page.page.locator("#token").fill(given)
                page.page.keyboard.press("Enter")
                if not works:
                    page.page.wait_for_function(
                        "() => document.getElementById('notice').textContent.includes('none that')"
                    )
            page.pick("k9")
            check(page.columns(), explorer, 1, explorer.items(np.array([9])))
            kept = page.page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])")
            assert TOKEN not in kept and TOKEN not in page.page.content()
            page.said = [one for one in page.said if "401" not in one]
        assert not any(TOKEN in one for one in page.asked)


def test_the_page_of_the_command(browser: Any, explorer: Explorer, tmp_path: Path) -> None:
    explorer.index.save(tmp_path / "index")
    write_vectors(tmp_path / "X.npy", VECTORS)
    with (
        service(tmp_path / "index", "--quiet", "--vectors", str(tmp_path / "X.npy"), "--bytes", "3,10") as process,
        seen(browser, process.url + "/") as page,
    ):
        page.pick("k9")
        check(page.columns(), explorer, 1, explorer.items(np.array([9])))
        assert page.page.locator("#name").text_content() == "index"
        assert page.page.locator("#hardest").is_hidden()
        page.page.locator("#any").click()
        page.page.wait_for_function("text => document.getElementById('query-text').textContent !== text", arg=TEXTS[9])


def test_one_item_in_several_sizes_has_too_few_to_measure(browser: Any, tmp_path: Path) -> None:
    index = Index.create(None, zoo.codec("signs"))
    index.add(zoo.vectors(1, 1))
    originals = Originals.of(index, zoo.vectors(1, 1))
    write_page(tmp_path / "page.html", Explorer(index, originals, other_sizes(index, originals, [3])), [0])
    with seen(browser, (tmp_path / "page.html").as_uri()) as page:
        page.settled("item 0")
        assert "too few" in page.page.locator("#recall").text_content()
        assert "1 item of 10 dimensions" in page.page.locator("#facts").text_content()


def test_a_vector_is_pasted_where_items_cannot_ask(browser: Any) -> None:
    X = zoo.vectors(60, 1)
    index = Index.create(None, zoo.codec("spectral"))
    index.add(X)
    with running(Explorer(index)) as url, seen(browser, url) as page:
        page.page.wait_for_function("() => document.getElementById('notice').textContent.includes('--vectors')")
        assert page.page.locator("#bytes").text_content() == str(index.codec.n_bytes)
        page.page.get_by_label("A vector", exact=True).check()
        page.page.locator("#vector").fill(" ".join(map(str, X[7].tolist())))
        page.page.locator("#by-vector button").click()
        page.settled("A vector of 10 numbers")
        assert page.columns()["hamming"]["ids"] == index.search(X[7], 10, method="hamming")[1].tolist()
        page.said = [one for one in page.said if "400" not in one]  # Chromium's own line on what the service refused
